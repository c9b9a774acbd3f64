//! Proves for a whole text, of which only the words are known, that it leaves nothing in its
//! session.
//!
//! A word counts as everything that it may name: a relation, a function, a type. So everything that
//! a text runs is examined, and also some objects that it does not run.

use std::collections::BTreeSet;
use std::sync::Arc;

use windrow_core::Apart;
use windrow_sql::lex::{Lexer, TokenKind};

use crate::action::{self, Action};
use crate::catalog::{Catalog, Kind};
use crate::list::{Company, company};
use crate::reason;
use crate::trusted::Trusted;

/// The words and operators of a text, for [`crate::TEXT`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Words {
    names: BTreeSet<Box<str>>,
    operators: BTreeSet<Box<str>>,
}

impl Words {
    /// Splits a text into words. `standard` is the session's `standard_conforming_strings`. Returns
    /// `None` if the words are uncertain.
    pub fn of(text: &str, standard: bool) -> Option<Self> {
        let mut words = Self::default();
        let mut lexer = Lexer::new(text, standard).ok()?;
        loop {
            let token = lexer.token().ok()?;
            let text = text.get(token.start..token.end)?;
            match token.kind {
                TokenKind::End => return Some(words),
                TokenKind::Word => {
                    words.names.insert(fold(text)?);
                }
                TokenKind::Quoted => {
                    let inner = text.get(1..text.len() - 1)?;
                    words.names.insert(inner.replace("\"\"", "\"").into());
                }
                TokenKind::Operator => {
                    words.operators.insert(text.into());
                }
                // An identifier may be in it, written by the numbers of its letters.
                TokenKind::Special if text.starts_with(['u', 'U']) => return None,
                _ => {}
            }
        }
    }

    /// Returns the words that may name something, each once.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(|name| &**name)
    }

    pub(crate) fn has_operator(&self, operator: &str) -> bool {
        self.operators.contains(operator)
    }

    /// Returns the first parameter of [`crate::TEXT`].
    pub fn names(&self) -> String {
        joined(&self.names)
    }

    /// Returns the second parameter of [`crate::TEXT`].
    pub fn operators(&self) -> String {
        joined(&self.operators)
    }
}

/// Folds a word. `None` for letters outside of ASCII, because their folding depends on the server's
/// encoding.
fn fold(word: &str) -> Option<Box<str>> {
    word.is_ascii().then(|| word.to_ascii_lowercase().into())
}

fn joined(words: &BTreeSet<Box<str>>) -> String {
    let words: Vec<&str> = words.iter().map(|word| &**word).collect();
    words.join("\u{1}")
}

impl Catalog {
    /// Returns the reason why an operator of a statement with these words cannot be evaluated
    /// together with other rows.
    pub fn operator_apart(&self, words: &Words) -> Option<Apart> {
        let mut operators = self.operators.iter();
        let found = operators.find(|operator| words.has_operator(operator))?;
        Some(reason::operator(found))
    }

    /// Returns the unproven code that a text with these words may run; `None` if there is none.
    /// `writes` is true if the text may write. The rows of [`crate::TEXT`] must have been
    /// collected. The text names the code but need not run it.
    ///
    /// Functions of sequences are not unproven, but leave their last value: see [`Catalog::takes`].
    pub fn leaves(&self, writes: bool, trusted: &Trusted) -> Option<Arc<Apart>> {
        let unproven = |apart: &Apart| apart.unproven;
        let called = self.called.iter().filter(|called| {
            writes
                || matches!(
                    called.kind,
                    Kind::Policy | Kind::View | Kind::Words | Kind::Type | Kind::Domain
                )
        });
        let mut functions = called.filter(|called| !called.is_code_of_type());
        let found = functions
            .find_map(|called| action::of_function(called, true, trusted).filter(unproven));
        let triggers = || writes.then(|| self.trigger_that_leaves(trusted)).flatten();
        let foreign = || {
            let mut relations = self.relations.iter();
            let foreign = relations.find(|relation| relation.kind == b'f')?;
            Some(reason::kind(foreign.kind, &foreign.name).unproven())
        };
        found.or_else(triggers).or_else(foreign).map(Arc::new)
    }

    fn trigger_that_leaves(&self, trusted: &Trusted) -> Option<Apart> {
        let any = |_: &str| true;
        let action = Action {
            inserts: true,
            updates: true,
            deletes: true,
            defaults: &any,
            sets: &any,
            is_key: &any,
        };
        self.triggers_apart(&action, trusted)
            .find(|apart| apart.unproven)
    }

    /// Returns true if a text may run expressions that it does not show: of a view, a policy, or a
    /// function that is not built in.
    pub fn runs_hidden(&self) -> bool {
        let mut relations = self.relations.iter();
        let mut called = self.called.iter();
        relations.any(|relation| relation.kind == b'v' || relation.secured)
            || called.any(|called| match called.kind {
                Kind::Policy | Kind::View => true,
                Kind::Words => !called.function.built_in && !called.function.has_code(),
                _ => false,
            })
    }

    /// Returns true if a text may take from or set a sequence that it does not name itself. The
    /// session remembers the last value.
    ///
    /// Trusted functions may do anything with sequences.
    pub fn takes(&self, trusted: &Trusted) -> bool {
        let mut triggers = self.triggers.iter();
        if triggers.any(|trigger| trusted.has(&trigger.function.name)) {
            return true;
        }
        let mut called = self.called.iter();
        called.any(|called| {
            if trusted.has(&called.function.name) {
                return true;
            }
            // The words of the text itself show its calls and the defaults of INSERT.
            called.reach.is_by_insert()
                && !matches!(called.kind, Kind::Default | Kind::Words)
                && called.function.built_in
                && company(called.function.bare(), called.function.volatility) == Company::Sequence
        })
    }
}
