//! Whether records are passed on as they stand in their file or split into fields first. Pure.
//!
//! Passing them on costs this program next to nothing, and the database the work of reading them.
//! Which of both is faster follows from the columns' types, the cores on both sides and the line
//! between them, so it is found out: now and then some portions take the other form, and the faster
//! one is kept.

use std::time::Instant;

use windrow_core::Bulk;

/// The name of the form by which rows are written. Some databases know it only once they have
/// loaded.
pub(super) fn name(bulk: Option<&dyn Bulk>) -> String {
    match bulk {
        Some(bulk) => bulk.form().to_owned(),
        None => "batches".to_owned(),
    }
}

/// The form of a portion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// As it stands in the file.
    Verbatim,
    /// Rows of fields.
    Split,
}

/// Portions that take the faster form before the other one is tried again.
const REST: u32 = 32;

/// How much faster the rows of fields must be to be worth the work that they cost here.
const WORTH: f64 = 1.05;

/// The fewest portions that are split after one could not be passed on, and the most.
const SPLIT: (u32, u32) = (16, 1024);

/// How fast old observations fade: what is left of them after another portion.
const FADING: f64 = 0.7;

/// What has been seen so far.
#[derive(Clone, Debug)]
pub(super) struct Forms {
    /// Records can be passed on at all.
    possible: bool,
    /// Portions of one form that show how fast it is.
    trial: u32,
    /// Portions that take the faster form before the other one is tried.
    rest: u32,
    /// The form that is tried, and the portions that are still to take it.
    trying: Option<(Form, u32)>,
    verbatim: Rate,
    split: Rate,
    /// The last portion that was written.
    last: Option<(Form, Instant)>,
    /// Portions that are split because one could not be passed on.
    pause: u32,
    /// How many that were the last time.
    last_pause: u32,
}

/// Rows and the seconds that they took.
#[derive(Clone, Copy, Debug, Default)]
struct Rate {
    rows: f64,
    seconds: f64,
}

impl Rate {
    fn add(&mut self, rows: usize, seconds: f64) {
        self.rows = self.rows * FADING + rows as f64;
        self.seconds = self.seconds * FADING + seconds;
    }

    fn a_second(self) -> Option<f64> {
        (self.seconds > 0.0).then(|| self.rows / self.seconds)
    }
}

impl Forms {
    /// Nothing seen. `jobs`: how many write at once.
    pub(super) fn new(possible: bool, jobs: usize) -> Self {
        let trial = u32::try_from(jobs + 2).unwrap_or(u32::MAX);
        Self {
            possible,
            trial,
            // The first portions are slower whatever their form: connections are opened, and the
            // table grows.
            rest: trial.saturating_mul(2),
            trying: None,
            verbatim: Rate::default(),
            split: Rate::default(),
            last: None,
            pause: 0,
            last_pause: 0,
        }
    }

    /// The form of the next portion.
    pub(super) fn next(&mut self) -> Form {
        if !self.possible {
            return Form::Split;
        }
        if self.pause > 0 {
            self.pause -= 1;
            return Form::Split;
        }
        let best = self.best();
        if self.rest == 0 {
            let other = match best {
                Form::Verbatim => Form::Split,
                Form::Split => Form::Verbatim,
            };
            (self.rest, self.trying) = (REST, Some((other, self.trial)));
        }
        if let Some((form, left @ 1..)) = self.trying {
            self.trying = Some((form, left - 1));
            return form;
        }
        self.rest -= 1;
        best
    }

    /// Before both have been seen, that which costs less here.
    fn best(&self) -> Form {
        match (self.verbatim.a_second(), self.split.a_second()) {
            (Some(verbatim), Some(split)) if split > verbatim * WORTH => Form::Split,
            _ => Form::Verbatim,
        }
    }

    /// A portion was written whole by the bulk form.
    pub(super) fn written(&mut self, form: Form, rows: usize, now: Instant) {
        let before = self.last.replace((form, now));
        if let Some((_, before)) = before.filter(|(last, _)| *last == form) {
            let seconds = now.saturating_duration_since(before).as_secs_f64();
            match form {
                Form::Verbatim => self.verbatim.add(rows, seconds),
                Form::Split => self.split.add(rows, seconds),
            }
        }
        if form == Form::Verbatim {
            self.last_pause = 0;
        }
    }

    /// A portion went another way, which says nothing of either form.
    pub(super) fn disturbed(&mut self) {
        self.last = None;
    }

    /// A portion could not be passed on: others like it will follow.
    pub(super) fn refused(&mut self) {
        self.disturbed();
        self.last_pause = (self.last_pause * 2).clamp(SPLIT.0, SPLIT.1);
        self.pause = self.last_pause;
    }

    /// What was seen, for the log: rows a second as they stand in the file, and of fields.
    pub(super) fn rates(&self) -> (Option<f64>, Option<f64>) {
        (self.verbatim.a_second(), self.split.a_second())
    }

    /// The database does not read them.
    pub(super) fn impossible(&mut self) {
        self.possible = false;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// How many of the portions were passed on, where each form takes so many microseconds for a
    /// portion. Two are always on their way.
    fn passed_on(portions: usize, verbatim: u64, split: u64) -> usize {
        let mut forms = Forms::new(true, 1);
        let mut now = Instant::now();
        let mut under_way = std::collections::VecDeque::new();
        let mut passed = 0;
        for _ in 0..portions {
            let form = forms.next();
            passed += usize::from(form == Form::Verbatim);
            under_way.push_back(form);
            if under_way.len() > 2 {
                let form = under_way.pop_front().unwrap();
                let took = match form {
                    Form::Verbatim => verbatim,
                    Form::Split => split,
                };
                now += Duration::from_micros(took);
                forms.written(form, 1000, now);
            }
        }
        passed
    }

    #[test]
    fn the_faster_form_is_found_and_kept() {
        let passed = passed_on(1000, 1000, 1500);
        assert!(passed > 900 && passed < 1000, "{passed}");
        let passed = passed_on(1000, 1500, 1000);
        assert!(passed > 10 && passed < 120, "{passed}");
        // Files of a few portions are passed on.
        assert_eq!(passed_on(6, 1500, 1000), 6);
    }

    #[test]
    fn a_form_that_becomes_slower_is_left() {
        let mut forms = Forms::new(true, 1);
        let mut now = Instant::now();
        let mut passed = 0;
        for portion in 0..2000 {
            let form = forms.next();
            let late = portion >= 1000;
            passed += usize::from(late && form == Form::Verbatim);
            let slow = late == (form == Form::Verbatim);
            now += Duration::from_micros(if slow { 1500 } else { 1000 });
            forms.written(form, 1000, now);
        }
        assert!(passed < 200, "{passed}");
    }

    #[test]
    fn what_cannot_be_passed_on_is_hardly_tried() {
        let mut forms = Forms::new(true, 2);
        let mut tried = 0;
        for _ in 0..10_000 {
            if forms.next() == Form::Verbatim {
                tried += 1;
                forms.refused();
            }
        }
        assert!((5..25).contains(&tried), "{tried}");
        forms.impossible();
        assert!((0..5000).all(|_| forms.next() == Form::Split));
        let mut never = Forms::new(false, 1);
        assert_eq!(never.next(), Form::Split);
    }
}
