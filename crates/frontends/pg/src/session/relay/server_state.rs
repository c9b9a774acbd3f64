//! What a session may have left behind on its server connection.

use std::sync::Arc;

use windrow_core::{Apart, Name};
use windrow_sql::{Effect, Names};

use super::used_sequences::UsedSequences;
use crate::client::Settings;
use crate::pool::{emptied, lasts};
use crate::proofs::Changing;
use crate::statements::{CachedStatement, ClientName};

/// The longest SET that is remembered, in bytes, and the most of them.
const LONGEST: usize = 1024;
const MOST: usize = 64;

/// Whether questions can look at what was taken on the server connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Look {
    #[default]
    Unknown,
    /// They can, as long as nothing is rolled back or discarded.
    Can,
    Cannot,
}

/// The state of a session on its server connection, as far as others could meet it there.
#[derive(Default)]
pub(super) struct ServerState {
    /// Values may have been taken from sequences.
    pub(super) generates: bool,
    /// Where they may have been taken from.
    pub(super) sequences: UsedSequences,
    pub(super) look: Look,
    /// The session may listen to channels. What the server tells at any time must not meet a
    /// question of ours.
    pub(super) listens: bool,
    /// It has ended to listen to some of them.
    pub(super) unlistened: bool,
    /// What was asked about that says that it listens to others.
    pub(super) still_listens: bool,
    /// Something may have been that the session can be asked for.
    pub(super) unknown: bool,
    /// True if the catalog was asked about a statement after it ran, or the server has reported a
    /// change that no SET of the session explains: what the session's settings are is asked as well
    /// before another session gets the connection.
    pub(super) is_doubted: bool,
    /// Names of statements that were sent, of which is not known yet what they run.
    pub(super) unjudged: Vec<Arc<Names>>,
    /// Which tables were meant has changed since the session has the connection.
    pub(super) moved: bool,
    /// Code was run of which nothing is proven.
    pub(super) unproven: Option<Arc<Apart>>,
    /// The catalog is being changed.
    pub(super) changing: Option<Changing>,
    /// Settings of modules that were set until a transaction ends.
    pub(super) local: Vec<Box<str>>,
    /// Why the connection is kept.
    pub(super) pinned: Option<Box<str>>,
    /// It is kept until the session ends, and closed then.
    pub(super) for_good: bool,
    /// Portals of statements that change a setting.
    pub(super) set_portals: Vec<(ClientName, Arc<CachedStatement>)>,
    /// Settings that were changed in the transaction that is not committed yet.
    changed: Vec<Arc<CachedStatement>>,
    /// The last transaction command was ROLLBACK.
    rolled_back: bool,
}

impl ServerState {
    /// Of a connection that is kept: what may have been taken from sequences.
    pub(super) fn of_sequences(generates: bool, sequences: UsedSequences) -> Self {
        Self {
            generates,
            sequences,
            ..Self::default()
        }
    }

    /// True if nothing can have been left behind that the session's own statements do not tell.
    pub(super) fn is_clean(&self) -> bool {
        !self.unknown && !self.is_doubted
    }

    /// Notes a statement that is sent. Returns true if it changes a setting, which shows when it is
    /// complete.
    pub(super) fn note(&mut self, cached: &CachedStatement) -> bool {
        self.generates |= cached.names().is_none_or(|names| names.may_generate);
        cached
            .effect()
            .is_some_and(|effect| self.note_effect(effect))
    }

    fn note_effect(&mut self, effect: &Effect) -> bool {
        match effect {
            Effect::Set { .. }
            | Effect::ResetAll
            | Effect::DiscardAll
            | Effect::SetWindrow { .. } => {
                return true;
            }
            Effect::Several(effects) => {
                let mut sets = false;
                for effect in effects {
                    sets |= self.note_effect(effect);
                }
                // Which of several statements was the one that is complete is not followed: all of
                // them are, or none, unless they are about transactions.
                self.unknown |= sets && !is_all_or_none(effects);
            }
            _ => {}
        }
        false
    }

    /// A statement is complete.
    pub(super) fn completed(&mut self, tag: &[u8], cached: Option<Arc<CachedStatement>>) {
        match tag {
            b"COMMIT" => self.rolled_back = false,
            b"ROLLBACK" => self.rolled_back = true,
            b"DISCARD TEMP" => self.look = Look::Unknown,
            b"DISCARD ALL" | b"DISCARD SEQUENCES" => {
                self.look = Look::Unknown;
                self.generates = false;
                self.sequences = UsedSequences::default();
            }
            _ => {}
        }
        self.unlistened |= matches!(tag, b"UNLISTEN" | b"DISCARD ALL");
        // Something may have gone for which the connection is kept.
        let goes: [&[u8]; 6] = [b"DROP ", b"DISCARD ", b"RESET", b"SET", b"CLOSE", b"COMMIT"];
        self.unknown |= self.pinned.is_some() && goes.iter().any(|goes| tag.starts_with(goes));
        // What was rolled back to a savepoint is not followed.
        self.unknown |= tag == b"ROLLBACK" && !self.changed.is_empty();
        let is_followed = |cached: &Arc<CachedStatement>| match cached.effect() {
            Some(Effect::Set { .. } | Effect::ResetAll | Effect::DiscardAll) => true,
            // Each of its statements says that it is complete.
            Some(Effect::Several(effects)) => {
                let is_noted = |last: &Arc<CachedStatement>| Arc::ptr_eq(last, cached);
                is_all_or_none(effects) && !self.changed.last().is_some_and(is_noted)
            }
            _ => false,
        };
        let changes = cached.filter(is_followed);
        self.changed.extend(changes);
    }

    /// True where a setting was changed in the transaction under way.
    pub(super) fn has_changed_settings(&self) -> bool {
        !self.changed.is_empty() || !self.local.is_empty() || !self.set_portals.is_empty()
    }

    /// Something failed. `status`: of the transaction before.
    pub(super) fn failed(&mut self, status: u8) {
        if status == b'I' {
            self.changed.clear();
        }
    }

    /// The session is outside of a transaction. `before`: the status before. True if its settings
    /// have changed.
    pub(super) fn settle(&mut self, before: u8, settings: &mut Settings) -> bool {
        self.set_portals.clear();
        self.changing = None;
        let changed = std::mem::take(&mut self.changed);
        let local = std::mem::take(&mut self.local);
        let undone = before != b'I' && self.rolled_back;
        if local.is_empty() && (changed.is_empty() || undone) {
            return false;
        }
        let mut set: Vec<(Name, Name)> = settings.set.to_vec();
        for name in local {
            self.unknown |= !note_local(&mut set, &name);
        }
        let changed = if undone { Vec::new() } else { changed };
        for cached in &changed {
            self.unknown |= match cached.effect() {
                Some(Effect::Several(effects)) => !change_all(&mut set, effects, &cached.text),
                Some(effect) => !change(&mut set, effect, &cached.text),
                None => true,
            };
        }
        settings.set = set.into();
        true
    }
}

/// True if several statements change settings, and all of them or none: no transaction ends between
/// them.
fn is_all_or_none(effects: &[Effect]) -> bool {
    let changes = |effect: &Effect| {
        matches!(
            effect,
            Effect::Set { .. } | Effect::ResetAll | Effect::DiscardAll
        )
    };
    let other = |effect: &Effect| {
        matches!(
            effect,
            Effect::Begin | Effect::End | Effect::SetWindrow { .. }
        )
    };
    effects.iter().any(changes) && !effects.iter().any(other)
}

/// Changes the list of SETs in force as several statements do. False: that cannot be followed.
fn change_all(set: &mut Vec<(Name, Name)>, effects: &[Effect], text: &[u8]) -> bool {
    let text = std::str::from_utf8(text).ok();
    let Some(pieces) = text.and_then(windrow_sql::split) else {
        return false;
    };
    let mut is_followed = pieces.len() == effects.len();
    for (effect, piece) in effects.iter().zip(pieces) {
        // What is no setting changes none.
        is_followed &= match effect {
            Effect::Set { .. } | Effect::ResetAll | Effect::DiscardAll => {
                change(set, effect, piece.as_bytes())
            }
            _ => true,
        };
    }
    is_followed
}

/// Changes the list of SETs in force as a statement does. False: that cannot be followed.
fn change(set: &mut Vec<(Name, Name)>, effect: &Effect, text: &[u8]) -> bool {
    let is_identity = |name: &str| matches!(name, "role" | "session_authorization");
    match effect {
        Effect::Set { name, .. } if &**name == "application_name" => true,
        Effect::Set { name, set: is_set } => {
            let goes = |other: &str| {
                *other == **name || (&**name == "session_authorization" && other == "role")
            };
            if !is_set && lasts(name) {
                set.retain(|(other, _)| !goes(other));
                return note_local(set, name);
            }
            set.retain(|(other, _)| !goes(other));
            if !is_set {
                return true;
            }
            let text = std::str::from_utf8(text);
            let Ok(text) = text.map(|text| text.trim_end().trim_end_matches(';')) else {
                return false;
            };
            if text.len() > LONGEST || set.len() >= MOST {
                return false;
            }
            set.push((name.clone(), text.into()));
            sort(set);
            true
        }
        Effect::ResetAll => {
            set.retain(|(name, _)| is_identity(name) || lasts(name));
            empty_lasting(set);
            true
        }
        Effect::DiscardAll => {
            set.retain(|(name, _)| lasts(name));
            empty_lasting(set);
            true
        }
        _ => false,
    }
}

/// Notes a setting of a module that is not in force any more, but known from now on. False: too
/// many.
fn note_local(set: &mut Vec<(Name, Name)>, name: &str) -> bool {
    if set.iter().any(|(other, _)| **other == *name) {
        return true;
    }
    if set.len() >= MOST {
        return false;
    }
    set.push((name.into(), emptied(name)));
    sort(set);
    true
}

fn empty_lasting(set: &mut [(Name, Name)]) {
    for (name, statement) in set.iter_mut().filter(|(name, _)| lasts(name)) {
        *statement = emptied(name);
    }
}

fn sort(set: &mut [(Name, Name)]) {
    set.sort_by(|(a, _), (b, _)| rank(a).cmp(&rank(b)).then_with(|| a.cmp(b)));
}

/// Who somebody is decides what may be set.
fn rank(name: &str) -> u8 {
    match name {
        "session_authorization" => 0,
        "role" => 1,
        _ => 2,
    }
}
