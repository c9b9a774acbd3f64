//! Lifts literals out of texts, so that texts that only differ in them are one statement.

use std::sync::Arc;

use windrow_core::Arguments;
use windrow_sql::{Lifted, Reading, highest_parameter};

use super::cache::StatementCache;
use super::cached::{CachedStatement, LiftedText};

/// The reason that keeps a text with literals from being joined.
pub(crate) const NOT_LIFTED: &str = "literals that are not lifted";

/// A simple query.
#[derive(Clone, Debug)]
pub(crate) struct SimpleQuery {
    /// The entry of its text, or of its template.
    pub(crate) cached: Arc<CachedStatement>,
    /// The literals, in the form of a Bind message's values, if they were lifted.
    pub(crate) values: Option<Box<[u8]>>,
}

/// A text that a client prepares.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PreparedText<'a> {
    pub(crate) text: &'a [u8],
    /// The setting `standard_conforming_strings` of its session.
    pub(crate) standard_strings: bool,
    /// True if its session speaks UTF-8.
    pub(crate) utf8: bool,
    /// True if it is prepared under a name, so that it is likely to come again.
    pub(crate) is_named: bool,
}

impl StatementCache {
    /// Parses a simple query, and lifts literals out of it if possible. `is_eager`: true if a query
    /// in which literals remain counts as one that comes again.
    pub(crate) fn simple(
        &self,
        text: &[u8],
        (standard_strings, utf8): (bool, bool),
        is_eager: bool,
    ) -> SimpleQuery {
        let whole = || SimpleQuery {
            cached: self.unlifted(text, utf8),
            values: None,
        };
        let Some(sql) = liftable(text, standard_strings, utf8) else {
            return whole();
        };
        self.with_lifter(|lifter| match lifter.lift(sql, standard_strings) {
            Some(lifted) => {
                let types = lifted.types.iter().copied();
                let (cached, was_there) = self.find(lifted.template.as_bytes(), types, utf8);
                // With literals remaining in it, it may never come again, and describing it would
                // be useless.
                match lifted.leftover && !was_there && !is_eager {
                    true => SimpleQuery {
                        cached: Arc::new(cached.apart(NOT_LIFTED)),
                        values: None,
                    },
                    false => SimpleQuery {
                        cached,
                        values: Some(lifted.values.into()),
                    },
                }
            }
            None => whole(),
        })
    }

    /// Parses a text whose literals stay in it. Such a text is not joined, because each would be a
    /// statement of its own.
    fn unlifted(&self, text: &[u8], utf8: bool) -> Arc<CachedStatement> {
        let (cached, _) = self.find(text, std::iter::empty(), utf8);
        match &cached.reading {
            Reading::Join(_) => Arc::new(cached.apart(NOT_LIFTED)),
            Reading::Apart(_) => cached,
        }
    }

    /// Parses a text that a client prepares with these types of parameters. A text with lifted
    /// literals is kept only if it has a name.
    pub(crate) fn prepared(
        &self,
        prepared: PreparedText<'_>,
        types: impl ExactSizeIterator<Item = u32> + Clone,
    ) -> Arc<CachedStatement> {
        let PreparedText { text, utf8, .. } = prepared;
        if let Some(known) = self.known(text, types.clone(), utf8) {
            return known;
        }
        if names_no_type(prepared, types.clone()) {
            let same = self.prepared(prepared, std::iter::empty());
            self.find_also(&same, types, utf8);
            return same;
        }
        match self.lifted(prepared, &types) {
            Some(lifted) => lifted,
            None => self.find(text, types, utf8).0,
        }
    }

    fn lifted(
        &self,
        prepared: PreparedText<'_>,
        types: &(impl ExactSizeIterator<Item = u32> + Clone),
    ) -> Option<Arc<CachedStatement>> {
        let PreparedText {
            text,
            standard_strings,
            utf8,
            is_named,
        } = prepared;
        let sql = liftable(text, standard_strings, utf8)?;
        self.with_lifter(|lifter| {
            let lifted = lifter.lift_prepared(sql, types.len(), standard_strings)?;
            if lifted.template == sql {
                return None;
            }
            let template = self.template(&lifted, types.clone(), utf8)?;
            let literals = Arguments::of(lifted.values, lifted.count())?;
            let own = LiftedText {
                template,
                own: lifted.own,
                literals,
                count: lifted.count(),
            };
            let cached = CachedStatement::lifted(text, types.clone(), own);
            // The meaning of a backslash depends on a setting that the cache does not know.
            let is_kept = is_named && memchr::memchr(b'\\', text).is_none();
            Some(match is_kept {
                true => self.keep(cached, utf8),
                false => Arc::new(cached),
            })
        })
    }

    /// Returns the template of a text, if it may be joined. A template in which literals remain is
    /// joined from its first use on, so that replicas get the write.
    fn template(
        &self,
        lifted: &Lifted<'_>,
        types: impl ExactSizeIterator<Item = u32> + Clone,
        utf8: bool,
    ) -> Option<Arc<CachedStatement>> {
        let unnamed = lifted.own.saturating_sub(types.len());
        let own = types.chain(std::iter::repeat_n(0, unnamed));
        let all: Box<[u32]> = own.chain(lifted.types.iter().copied()).collect();
        let (template, _) = self.find(lifted.template.as_bytes(), all.iter().copied(), utf8);
        template.parsed()?;
        Some(template)
    }

    /// Parses a text that a client prepares with its literals in it, because they may not be
    /// values.
    pub(crate) fn whole(
        &self,
        text: &[u8],
        types: impl ExactSizeIterator<Item = u32> + Clone,
        utf8: bool,
    ) -> Arc<CachedStatement> {
        let known = self.known(text, types.clone(), utf8);
        known
            .filter(|known| !known.is_lifted())
            .unwrap_or_else(|| self.keep(CachedStatement::new(text, types, utf8), utf8))
    }
}

/// Returns the text if literals may be lifted out of it.
fn liftable(text: &[u8], standard_strings: bool, utf8: bool) -> Option<&str> {
    // Each backslash in a non-standard literal causes a warning (22P06), which only the server can
    // word.
    let is_plain = standard_strings || memchr::memchr(b'\\', text).is_none();
    let is_known = utf8 || text.is_ascii();
    std::str::from_utf8(text)
        .ok()
        .filter(|_| is_plain && is_known)
}

/// Returns true if a client names exactly a 0 for each parameter of a text, which is the same as
/// naming no types.
fn names_no_type(
    prepared: PreparedText<'_>,
    mut types: impl ExactSizeIterator<Item = u32>,
) -> bool {
    let count = types.len();
    let highest = || {
        let text = std::str::from_utf8(prepared.text).ok()?;
        highest_parameter(text, prepared.standard_strings)
    };
    count > 0 && types.all(|oid| oid == 0) && highest() == Some(count)
}

#[cfg(test)]
mod tests {
    use windrow_core::Formats;

    use super::*;

    fn prepared(cache: &StatementCache, text: &str, is_named: bool) -> Arc<CachedStatement> {
        let text = PreparedText {
            text: text.as_bytes(),
            standard_strings: true,
            utf8: true,
            is_named,
        };
        cache.prepared(text, std::iter::empty())
    }

    #[test]
    fn texts_that_differ_in_literals_and_comments_are_one_statement() {
        let cache = StatementCache::default();
        let one = prepared(&cache, "insert into t values ($1, 5) /*a*/", false);
        let other = prepared(&cache, "insert into t values ($1, 6) -- b", false);
        assert_eq!(one.described_as().number, other.described_as().number);
        assert_ne!(one.number, other.number);
        let origin = one.origin().unwrap();
        assert_eq!(origin.as_str(), "insert into t values ($1, 5) /*a*/");
        assert_eq!(origin.own, Some(1));
        let arguments = one.arguments(&[0, 0, 0, 1, b'7'], 1).unwrap();
        let values: Vec<_> = arguments.iter().collect();
        assert_eq!(values, [Some(&b"7"[..]), Some(b"5")]);
        assert_eq!(one.formats(Formats::Text), Formats::Text);
        let mixed = Formats::Each([true, false].into());
        assert_eq!(one.formats(Formats::Binary), mixed);
        // One whose statement is used as it stands has no other.
        let plain = prepared(&cache, "insert into t values ($1, $2)", false);
        assert_eq!(plain.described_as().number, plain.number);
        assert!(plain.origin().is_none());
    }

    #[test]
    fn types_of_0_for_all_parameters_are_no_types() {
        let cache = StatementCache::default();
        let with = |text: &str, types: &[u32]| {
            let prepared = PreparedText {
                text: text.as_bytes(),
                standard_strings: true,
                utf8: true,
                is_named: true,
            };
            cache.prepared(prepared, types.iter().copied())
        };
        for text in [
            "insert into t values ($1, $2)",
            "insert into t values ($2, $1, 'a')",
        ] {
            let none = with(text, &[]);
            assert!(none.types.is_empty());
            for _ in 0..2 {
                assert_eq!(with(text, &[0, 0]).number, none.number);
            }
            assert_eq!(with(text, &[]).number, none.number);
            // The server misses the type of the third one.
            for types in [&[0][..], &[0, 0, 0], &[0, 25], &[25, 0]] {
                let other = with(text, types);
                assert_ne!(other.number, none.number, "{text} {types:?}");
                assert_eq!(&*other.types, types);
            }
        }
        let quoted = "insert into t values ($1) returning '$2'";
        assert_eq!(*with(quoted, &[0, 0]).types, [0, 0]);
    }

    #[test]
    fn what_is_prepared_under_a_name_is_kept() {
        let cache = StatementCache::default();
        let number = |text, is_named| prepared(&cache, text, is_named).number;
        let text = "insert into t values ($1, 'a')";
        assert_eq!(number(text, true), number(text, true));
        let escaped = r"insert into t values ($1, 'a\b')";
        assert_ne!(number(escaped, true), number(escaped, true));
        let whole = cache.whole(text.as_bytes(), std::iter::empty(), true);
        assert_eq!(whole.described_as().number, whole.number);
        assert_eq!(number(text, true), whole.number);
    }

    #[test]
    fn a_flood_of_new_texts_crowds_nothing_out() {
        let cache = StatementCache::default();
        let known = "update t set v = $1 where id = $2";
        let number = prepared(&cache, known, false).number;
        for n in 0..40_000 {
            prepared(
                &cache,
                &format!("insert into t values ($1, {n}) /*{n}*/"),
                false,
            );
        }
        assert_eq!(prepared(&cache, known, false).number, number);
    }
}
