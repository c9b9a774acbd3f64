//! Collects the errors in settings, so that an operator can correct all of them at once.

/// The errors so far.
#[derive(Debug, Default)]
pub(super) struct Faults(Vec<anyhow::Error>);

impl Faults {
    /// Returns the value, or notes the error and returns `None`.
    pub(super) fn note<T>(&mut self, read: anyhow::Result<T>) -> Option<T> {
        read.map_err(|error| self.0.push(error)).ok()
    }

    /// Returns the value, or notes the error and returns `instead`.
    pub(super) fn or<T>(&mut self, read: anyhow::Result<T>, instead: T) -> T {
        self.note(read).unwrap_or(instead)
    }

    /// Notes a frontend's refusal of its settings, unless an error in its section was noted, which
    /// may be the cause.
    pub(super) fn note_refusal(&mut self, section: &str, said: Result<(), String>) {
        let Err(why) = said else { return };
        let begin = format!("{section}.");
        if !self
            .0
            .iter()
            .any(|error| format!("{error:#}").contains(&begin))
        {
            self.0.push(anyhow::anyhow!("{section}.listen: {why}"));
        }
    }

    /// Returns the errors.
    pub(super) fn all(&self) -> &[anyhow::Error] {
        &self.0
    }

    /// # Errors
    /// All that was noted, as one error.
    pub(super) fn end(mut self) -> anyhow::Result<()> {
        match self.0.len() {
            0 => Ok(()),
            1 => self.0.pop().map_or(Ok(()), Err),
            count => {
                let lines = self.0.iter().map(|error| format!("\n  {error:#}"));
                let lines: String = lines.collect();
                Err(anyhow::anyhow!("{count} settings make no sense{lines}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_told_as_it_is_and_several_in_a_list() {
        let mut faults = Faults::default();
        assert_eq!(faults.note(Ok(1)), Some(1));
        assert_eq!(faults.or(Err(anyhow::anyhow!("a")), 2), 2);
        assert_eq!(faults.all().len(), 1);
        assert_eq!(faults.end().unwrap_err().to_string(), "a");
        let mut faults = Faults::default();
        for text in ["a", "b"] {
            faults.note::<()>(Err(anyhow::anyhow!(text).context("in")));
        }
        let told = faults.end().unwrap_err().to_string();
        assert_eq!(told, "2 settings make no sense\n  in: a\n  in: b");
        Faults::default().end().unwrap();
    }
}
