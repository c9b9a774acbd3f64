//! The judge: is what was seen explained by some order of the units, one after the other?
//!
//! Any order counts that keeps the order of each source, and that puts a unit behind all that were
//! answered before it was sent. Nothing else counts. Orders are tried depth first on a database of
//! the judge's own, each unit alone and directly; a prefix is left as soon as a unit is told
//! something else than was seen, or once the same units have led to the same state before.

use std::collections::HashSet;
use std::time::Instant;

use crate::record::{Line, Told, canonical, masked, so_far};

/// A run of a case through the program, to be explained.
pub struct Seen {
    /// What each unit of each source was told, in the order in which the source sent them.
    pub sources: Vec<Vec<Answered>>,
    /// What was left behind.
    pub left: Vec<Line>,
}

/// What a unit was told, and when.
pub struct Answered {
    /// When it was sent.
    pub sent: Instant,
    /// When its answer was there.
    pub answered: Instant,
    /// The answer.
    pub told: Told,
}

/// The judge's own database.
pub trait World {
    /// Makes everything as it was before the first unit.
    fn reset(&mut self);
    /// Runs a unit by itself.
    fn run(&mut self, source: usize, unit: usize) -> Told;
    /// What is left behind so far.
    fn left(&mut self) -> Vec<Line>;
    /// What else the next units can depend on.
    fn hidden(&mut self) -> Vec<String>;
}

/// What the judge says.
pub enum Verdict {
    /// An order explains it.
    Explained,
    /// No order does.
    Wrong(String),
    /// The search was given up.
    Undecided,
}

/// Units that are run before the search is given up.
const PATIENCE: usize = 500;

/// Looks for an order.
pub fn judge(world: &mut dyn World, seen: &Seen) -> Verdict {
    let mut search = Search {
        world,
        seen,
        order: Vec::new(),
        told: Vec::new(),
        standing: 0,
        dead: HashSet::new(),
        runs: 0,
        nearest: (0, String::new()),
    };
    search.world.reset();
    match search.explore() {
        true => Verdict::Explained,
        false if search.runs >= PATIENCE => Verdict::Undecided,
        false => Verdict::Wrong(search.nearest.1),
    }
}

struct Search<'a> {
    world: &'a mut dyn World,
    seen: &'a Seen,
    /// The prefix under consideration: source and unit.
    order: Vec<(usize, usize)>,
    /// What its units are told.
    told: Vec<Told>,
    /// How many units of the prefix the world has run; what is more than the prefix has to be
    /// undone.
    standing: usize,
    /// Where nothing was found: which units were run, and the state after them.
    dead: HashSet<(Vec<usize>, Vec<String>)>,
    runs: usize,
    /// The order that explained most, and what was different there.
    nearest: (usize, String),
}

impl Search<'_> {
    /// True if an order that begins with the prefix explains everything.
    fn explore(&mut self) -> bool {
        let next = self.candidates();
        if next.is_empty() {
            return self.is_explained();
        }
        let state = (!self.order.is_empty()).then(|| (self.progress(), self.state()));
        if state
            .as_ref()
            .is_some_and(|state| self.dead.contains(state))
        {
            return false;
        }
        for step in next {
            if self.runs >= PATIENCE {
                return false;
            }
            if self.step(step) && self.explore() {
                return true;
            }
            self.order.pop();
            self.told.pop();
        }
        self.dead.extend(state);
        false
    }

    /// Runs one more unit; true if it is told what was seen. It is a part of the prefix in any
    /// case.
    fn step(&mut self, (source, unit): (usize, usize)) -> bool {
        if self.standing != self.order.len() {
            self.world.reset();
            // Numbers that a run is told are its own.
            for (at, (source, unit)) in self.order.iter().enumerate() {
                self.told[at] = self.world.run(*source, *unit);
            }
        }
        let told = self.world.run(source, unit);
        self.runs += 1;
        let seen = &self.seen.sources[source][unit].told;
        let same = masked(&told) == masked(seen);
        if !same {
            let text = format!("it would be told\n{}", listed(&told));
            self.note(source, unit, &text);
        }
        self.order.push((source, unit));
        self.told.push(told);
        self.standing = self.order.len();
        same
    }

    /// The units that may come next, those that were answered first before the others.
    fn candidates(&self) -> Vec<(usize, usize)> {
        let progress = self.progress();
        let heads = progress.iter().enumerate();
        let heads = heads.filter_map(|(source, unit)| {
            let answered = self.seen.sources[source].get(*unit)?;
            Some((answered, (source, *unit)))
        });
        let heads: Vec<_> = heads.collect();
        let first = heads.iter().map(|(head, _)| head.answered).min();
        let open = heads
            .into_iter()
            .filter(|(head, _)| first.is_none_or(|first| head.sent <= first));
        let mut open: Vec<_> = open.collect();
        open.sort_by_key(|(head, _)| head.answered);
        open.into_iter().map(|(_, step)| step).collect()
    }

    /// How many units of each source are in the prefix.
    fn progress(&self) -> Vec<usize> {
        let mut progress = vec![0; self.seen.sources.len()];
        for (source, _) in &self.order {
            progress[*source] += 1;
        }
        progress
    }

    fn state(&mut self) -> Vec<String> {
        let left = self.world.left();
        let told = self.told_by_source();
        let mut state = so_far(told.into_iter().flatten().chain(&left));
        state.extend(self.world.hidden());
        state
    }

    fn is_explained(&mut self) -> bool {
        let left = self.world.left();
        let mine = self.whole(&self.told_by_source(), &left);
        let seen: Vec<&Told> = self
            .seen
            .sources
            .iter()
            .flatten()
            .map(|a| &a.told)
            .collect();
        let theirs = self.whole(&seen, &self.seen.left);
        if mine == theirs {
            return true;
        }
        let pairs = mine.iter().zip(&theirs);
        let different = pairs.filter(|(mine, theirs)| mine != theirs);
        let mut text: String = different
            .map(|(mine, theirs)| format!("    would be {mine}\n    but is   {theirs}\n"))
            .collect();
        if mine.len() != theirs.len() {
            text = format!("    would be {mine:#?}\n    but is   {theirs:#?}\n");
        }
        if self.nearest.0 <= self.order.len() {
            let order = self.named(&self.order);
            self.nearest = (
                self.order.len() + 1,
                format!(
                    "all is told as in the order {order}, but values or what is left are not:\n{text}"
                ),
            );
        }
        false
    }

    fn told_by_source(&self) -> Vec<&Told> {
        let mut all: Vec<_> = self.order.iter().zip(&self.told).collect();
        all.sort_by_key(|(step, _)| **step);
        all.into_iter().map(|(_, told)| told).collect()
    }

    fn whole(&self, told: &[&Told], left: &[Line]) -> Vec<String> {
        canonical(told.iter().copied().flatten().chain(left))
    }

    fn note(&mut self, source: usize, unit: usize, text: &str) {
        if self.nearest.0 <= self.order.len() {
            let order = self.named(&self.order);
            let seen = listed(&self.seen.sources[source][unit].told);
            self.nearest = (
                self.order.len(),
                format!(
                    "after {order}, unit {unit} of source {source} was told\n{seen}  but {text}"
                ),
            );
        }
    }

    fn named(&self, order: &[(usize, usize)]) -> String {
        let names = order
            .iter()
            .map(|(source, unit)| format!("{source}.{unit}"));
        format!("[{}]", names.collect::<Vec<_>>().join(" "))
    }
}

/// One line each.
pub fn listed(told: &[Line]) -> String {
    told.iter().map(|line| format!("    {line:?}\n")).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// A register: even units read it, odd ones of a source set it to `10 * source + unit`.
    #[derive(Default)]
    struct Register(usize);

    impl World for Register {
        fn reset(&mut self) {
            self.0 = 0;
        }

        fn run(&mut self, source: usize, unit: usize) -> Told {
            if unit % 2 == 1 {
                self.0 = 10 * source + unit;
            }
            vec![Line::Text(self.0.to_string())]
        }

        fn left(&mut self) -> Vec<Line> {
            vec![Line::Text(self.0.to_string())]
        }

        fn hidden(&mut self) -> Vec<String> {
            Vec::new()
        }
    }

    fn seen(told: &[&[usize]], left: usize) -> Seen {
        let now = Instant::now();
        let answered = |value: &usize| Answered {
            sent: now,
            answered: now + Duration::from_secs(1),
            told: vec![Line::Text(value.to_string())],
        };
        let sources = told
            .iter()
            .map(|source| source.iter().map(answered).collect());
        Seen {
            sources: sources.collect(),
            left: vec![Line::Text(left.to_string())],
        }
    }

    fn is_explained(seen: &Seen) -> bool {
        matches!(judge(&mut Register::default(), seen), Verdict::Explained)
    }

    #[test]
    fn any_order_of_the_sources_is_accepted() {
        assert!(is_explained(&seen(&[&[0, 1], &[0, 11]], 11)));
        assert!(is_explained(&seen(&[&[0, 1], &[1, 11]], 11)));
        assert!(is_explained(&seen(&[&[11, 1], &[0, 11]], 1)));
    }

    #[test]
    fn no_other_outcome_is() {
        // Each has read what the other set.
        assert!(!is_explained(&seen(&[&[11, 1], &[1, 11]], 11)));
        // What is left was overwritten.
        assert!(!is_explained(&seen(&[&[0, 1], &[1, 11]], 1)));
        // A source's second read comes before its write.
        assert!(!is_explained(&seen(&[&[0, 1, 0]], 1)));
    }

    #[test]
    fn who_was_answered_before_comes_before() {
        let mut late = seen(&[&[0, 1], &[0]], 1);
        late.sources[1][0].sent += Duration::from_secs(2);
        late.sources[1][0].answered += Duration::from_secs(2);
        assert!(!is_explained(&late));
        late.sources[1][0].told = vec![Line::Text("1".into())];
        assert!(is_explained(&late));
    }
}
