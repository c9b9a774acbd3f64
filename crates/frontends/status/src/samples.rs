//! Parses metrics in the text formats of Prometheus and OpenMetrics.

/// One value of a metric, with its name and labels.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sample<'a> {
    pub(crate) name: &'a str,
    labels: Vec<(&'a str, String)>,
    pub(crate) value: f64,
}

impl Sample<'_> {
    /// Returns the value of a label; empty if the sample has no such label.
    pub(crate) fn label(&self, name: &str) -> &str {
        let mut labels = self.labels.iter();
        let found = labels.find(|(label, _)| *label == name);
        found.map_or("", |(_, value)| value)
    }
}

/// Parses all samples of a text. Lines that cannot be parsed are skipped.
pub(crate) fn samples(text: &str) -> Vec<Sample<'_>> {
    text.lines().filter_map(sample).collect()
}

fn sample(line: &str) -> Option<Sample<'_>> {
    let end = line.find(['{', ' '])?;
    let (name, rest) = line.split_at_checked(end)?;
    if name.is_empty() || name.starts_with('#') {
        return None;
    }
    let (labels, rest) = match rest.strip_prefix('{') {
        Some(inside) => labels(inside)?,
        None => (Vec::new(), rest),
    };
    // A timestamp or an exemplar may follow the value.
    let value = rest.split_whitespace().next()?.parse().ok()?;
    Some(Sample {
        name,
        labels,
        value,
    })
}

/// Parses labels up to the closing brace. Returns them and the text after the brace.
fn labels(mut rest: &str) -> Option<(Vec<(&str, String)>, &str)> {
    let mut labels = Vec::new();
    loop {
        rest = rest.trim_start_matches(',');
        if let Some(behind) = rest.strip_prefix('}') {
            return Some((labels, behind));
        }
        let (name, behind) = rest.split_once("=\"")?;
        let (value, behind) = quoted(behind)?;
        labels.push((name, value));
        rest = behind;
    }
}

/// Parses a value up to its closing quote. Returns it and the text after the quote.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, char)) = chars.next() {
        match char {
            '"' => return Some((value, text.get(at + 1..)?)),
            '\\' => match chars.next()?.1 {
                'n' => value.push('\n'),
                other => value.push(other),
            },
            other => value.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_with_their_labels() {
        let text = "# HELP a b\n# TYPE a counter\na_total 3\nb{x=\"1\",y=\"p\\\"q\\\\r\\n{}\"} 2.5 # {t=\"1\"} 1\n\nnonsense\nc{x=\"1} 2\n# EOF\n";
        let found = samples(text);
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].name, found[0].value), ("a_total", 3.0));
        assert_eq!(found[1].label("y"), "p\"q\\r\n{}");
        assert_eq!((found[1].label("z"), found[1].value), ("", 2.5));
    }
}
