//! Texts that begin or end a transaction block and do nothing else.
//!
//! The PostgreSQL frontend answers them before the server has seen the block. What the server could
//! refuse, or answer with a warning or another tag, is not recognized.

use crate::identifier::identifier;
use crate::lex::TokenKind;
use crate::read::statements;
use crate::text::Text;
use crate::tokens::Tokens;
use crate::word::{Use, usage};
use crate::words::Words;

/// The longest text that is recognized, in bytes.
const MAX_BLOCK_TEXT: usize = 4096;

/// A statement that is the whole text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockStatement {
    /// The effect of the statement on the block.
    pub effect: BlockEffect,
    /// The tag of its CommandComplete.
    pub tag: &'static str,
    /// The words of the text, without comments and with one space between them.
    pub words: Box<str>,
    /// The name of the savepoint, folded; empty if there is none.
    pub savepoint: Box<str>,
}

/// The effect of a statement on a transaction block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockEffect {
    /// Outside of a block, the statement opens one: BEGIN, START TRANSACTION, with any modes.
    Opens,
    /// At the beginning of a block, the statement sets the block's modes: SET TRANSACTION, except
    /// for a snapshot.
    SetsModes,
    /// The statement commits the block: COMMIT, END.
    Commits,
    /// The statement rolls the block back: ROLLBACK, ABORT.
    RollsBack,
    /// The statement sets a savepoint within the block: SAVEPOINT.
    Saves,
    /// The statement removes a savepoint, and keeps what was done since: RELEASE.
    Releases,
    /// The statement rolls back to a savepoint: ROLLBACK TO.
    RollsBackTo,
}

/// The longest name of a savepoint that is recognized, in bytes: the server cuts longer ones.
const MAX_NAME: usize = 63;

/// Returns true if BEGIN that ends with this word has no modes.
fn is_no_mode(last: &str) -> bool {
    let words = ["begin", "work", "transaction"];
    words.iter().any(|word| last.eq_ignore_ascii_case(word))
}

/// Returns true for a statement that opens a block without modes.
pub(crate) fn opens_plainly(words: Words<'_>) -> bool {
    let opens = read(words).is_some_and(|(effect, _)| effect == BlockEffect::Opens);
    opens && is_no_mode(words.slice(words.len() - 1))
}

/// Returns the statement about a transaction block that a text consists of.
pub fn block(text: &str) -> Option<BlockStatement> {
    if text.len() > MAX_BLOCK_TEXT {
        return None;
    }
    let tokens = Text::read(text, |text| Tokens::of(text, true)).ok()?;
    let mut all = statements(&tokens.list);
    let words = Words::new(text, all.next()?);
    if all.next().is_some() {
        return None;
    }
    let slices: Vec<&str> = (0..words.len()).map(|at| words.slice(at)).collect();
    let ((effect, tag), savepoint) = match read(words) {
        Some(found) => (found, Box::default()),
        None => about_savepoint(words)?,
    };
    Some(BlockStatement {
        effect,
        tag,
        words: slices.join(" ").into(),
        savepoint,
    })
}

impl BlockStatement {
    /// Returns true for BEGIN without modes.
    pub fn opens_plainly(&self) -> bool {
        let last = self.words.rsplit(' ').next();
        self.effect == BlockEffect::Opens && last.is_some_and(is_no_mode)
    }

    /// Returns true for BEGIN without modes, or with modes that are the default of most databases:
    /// READ COMMITTED, READ WRITE.
    pub fn opens_usual(&self) -> bool {
        let mut words = self.words.split(' ').skip(1);
        let usual = |word: &str| {
            let usual = [
                "work",
                "transaction",
                "isolation",
                "level",
                "read",
                "committed",
                "write",
                ",",
            ];
            usual.iter().any(|known| word.eq_ignore_ascii_case(known))
        };
        self.effect == BlockEffect::Opens && words.all(usual)
    }
}

/// Reads SAVEPOINT, RELEASE and ROLLBACK TO, with the name of the savepoint.
fn about_savepoint(words: Words<'_>) -> Option<((BlockEffect, &'static str), Box<str>)> {
    let behind = |at: usize| at + usize::from(words.is(at, "savepoint"));
    let (at, found) = match () {
        () if words.is(0, "savepoint") => (1, (BlockEffect::Saves, "SAVEPOINT")),
        () if words.is(0, "release") => (behind(1), (BlockEffect::Releases, "RELEASE")),
        () if words.is(0, "rollback") && words.is(words.after_work(), "to") => {
            let at = behind(words.after_work() + 1);
            (at, (BlockEffect::RollsBackTo, "ROLLBACK"))
        }
        () => return None,
    };
    let (name, last) = identifier(words, at)?;
    let is_name = words.kind(at) == TokenKind::Quoted || usage(words.slice(at)) == Use::Any;
    (is_name && name.len() <= MAX_NAME && last + 1 == words.len())
        .then(|| (found, name.into_boxed_str()))
}

/// Returns the effect of a statement on a block, and the tag of its CommandComplete.
pub(crate) fn read(words: Words<'_>) -> Option<(BlockEffect, &'static str)> {
    let at = words.after_work();
    match () {
        () if words.is(0, "begin") && are_modes(words.from(at)) => {
            Some((BlockEffect::Opens, "BEGIN"))
        }
        () if words.is(0, "start") && words.is(1, "transaction") && are_modes(words.from(2)) => {
            Some((BlockEffect::Opens, "START TRANSACTION"))
        }
        () if words.is(0, "set") && words.is(1, "transaction") && words.len() > 2 => {
            are_modes(words.from(2)).then_some((BlockEffect::SetsModes, "SET"))
        }
        () if !ends_without_chain(words.from(at)) => None,
        () if words.any(0, &["commit", "end"]) => Some((BlockEffect::Commits, "COMMIT")),
        () if words.any(0, &["rollback", "abort"]) => Some((BlockEffect::RollsBack, "ROLLBACK")),
        () => None,
    }
}

/// Returns true for no words, and for AND NO CHAIN.
fn ends_without_chain(rest: Words<'_>) -> bool {
    let says_so = rest.is(0, "and") && rest.is(1, "no") && rest.is(2, "chain");
    rest.len() == if says_so { 3 } else { 0 }
}

/// Returns true for a list of transaction modes, with or without commas between them.
fn are_modes(mut rest: Words<'_>) -> bool {
    while rest.len() > 0 {
        let Some(length) = mode(rest) else {
            return false;
        };
        rest = rest.from(length);
        if rest.kind(0) == TokenKind::Comma {
            rest = rest.from(1);
            if rest.len() == 0 {
                return false;
            }
        }
    }
    true
}

/// Returns the number of words of the mode at the front.
fn mode(words: Words<'_>) -> Option<usize> {
    match () {
        () if words.is(0, "isolation") && words.is(1, "level") => level(words.from(2)),
        () if words.is(0, "read") && words.any(1, &["only", "write"]) => Some(2),
        () if words.is(0, "deferrable") => Some(1),
        () if words.is(0, "not") && words.is(1, "deferrable") => Some(2),
        () => None,
    }
}

/// Returns the number of words up to the end of the isolation level at the front.
fn level(words: Words<'_>) -> Option<usize> {
    match () {
        () if words.is(0, "serializable") => Some(3),
        () if words.is(0, "repeatable") && words.is(1, "read") => Some(4),
        () if words.is(0, "read") && words.any(1, &["committed", "uncommitted"]) => Some(4),
        () => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_nothing_but_a_block_statement_is_recognized() {
        use BlockEffect::{Commits, Opens, RollsBack, SetsModes};
        for (text, effect, tag, words) in [
            ("BEGIN", Opens, "BEGIN", "BEGIN"),
            (" begin work ; ", Opens, "BEGIN", "begin work"),
            (
                "/* a */ BEGIN -- b\n transaction;;",
                Opens,
                "BEGIN",
                "BEGIN transaction",
            ),
            (
                "start transaction isolation level repeatable read, read only",
                Opens,
                "START TRANSACTION",
                "start transaction isolation level repeatable read , read only",
            ),
            (
                "BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY DEFERRABLE",
                Opens,
                "BEGIN",
                "BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY DEFERRABLE",
            ),
            (
                "begin read write not deferrable",
                Opens,
                "BEGIN",
                "begin read write not deferrable",
            ),
            (
                "set transaction isolation level read committed",
                SetsModes,
                "SET",
                "set transaction isolation level read committed",
            ),
            ("COMMIT", Commits, "COMMIT", "COMMIT"),
            ("end transaction", Commits, "COMMIT", "end transaction"),
            (
                "commit and no chain",
                Commits,
                "COMMIT",
                "commit and no chain",
            ),
            ("ROLLBACK;", RollsBack, "ROLLBACK", "ROLLBACK"),
            ("abort work", RollsBack, "ROLLBACK", "abort work"),
        ] {
            let expected = BlockStatement {
                effect,
                tag,
                words: words.into(),
                savepoint: Box::default(),
            };
            assert_eq!(block(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn savepoints_are_recognized_by_their_names() {
        use BlockEffect::{Releases, RollsBackTo, Saves};
        for (text, effect, name) in [
            ("SAVEPOINT sa_savepoint_1", Saves, "sa_savepoint_1"),
            ("savepoint \"S139_x\";", Saves, "S139_x"),
            (
                "RELEASE SAVEPOINT Active_Record_1",
                Releases,
                "active_record_1",
            ),
            ("release sp1", Releases, "sp1"),
            ("savepoint PGJDBC_AUTOSAVE", Saves, "pgjdbc_autosave"),
            ("ROLLBACK TO SAVEPOINT trans2", RollsBackTo, "trans2"),
            ("rollback work to \"a \"\"b\"", RollsBackTo, "a \"b"),
        ] {
            let found = block(text).unwrap();
            assert_eq!((found.effect, &*found.savepoint), (effect, name), "{text}");
        }
        for text in [
            "savepoint",
            "savepoint select",
            "savepoint Current_User",
            "savepoint left",
            "savepoint a1 b",
            "release savepoint",
            "rollback to",
            "rollback to savepoint",
            "savepoint \"\"",
        ] {
            assert_eq!(block(text), None, "{text}");
        }
        let long = format!("savepoint \"{}\"", "x".repeat(64));
        assert_eq!(block(&long), None);
    }

    #[test]
    fn only_usual_modes_are_usual() {
        for (text, usual) in [
            ("begin", true),
            (
                "START TRANSACTION READ WRITE, ISOLATION LEVEL READ COMMITTED",
                true,
            ),
            ("begin isolation level repeatable read", false),
            ("begin read only", false),
            ("begin isolation level serializable", false),
            ("begin deferrable", false),
            ("begin isolation level read uncommitted", false),
            ("commit", false),
        ] {
            assert_eq!(block(text).unwrap().opens_usual(), usual, "{text}");
        }
    }

    #[test]
    fn only_a_begin_without_modes_opens_plainly() {
        for text in [
            "BEGIN",
            "begin work;",
            "start transaction",
            "Begin Transaction",
        ] {
            assert!(block(text).unwrap().opens_plainly(), "{text}");
        }
        for text in [
            "begin read write",
            "begin isolation level read committed",
            "begin not deferrable",
            "commit",
            "end transaction",
            "rollback work",
        ] {
            assert!(!block(text).unwrap().opens_plainly(), "{text}");
        }
    }

    #[test]
    fn what_the_server_may_refuse_or_answer_otherwise_is_not_recognized() {
        for text in [
            "",
            "begin; select 1",
            "begin isolation",
            "begin isolation level",
            "begin isolation level snapshot",
            "begin read only,",
            "begin , read only",
            "begin priority high",
            "begin deferred",
            "\"begin\"",
            "start",
            "start work",
            "set transaction",
            "set transaction snapshot '1'",
            "set local transaction read only",
            "set session characteristics as transaction read only",
            "commit and chain",
            "rollback and chain",
            "commit prepared 'x'",
            "commit and",
            "end if",
            "prepare transaction 'x'",
            "select 1",
            "begin 'open",
        ] {
            assert_eq!(block(text), None, "{text}");
        }
    }
}
