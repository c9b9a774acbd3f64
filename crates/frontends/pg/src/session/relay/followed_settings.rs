//! Follows the settings that a session's own statements change, through its transactions.

use std::sync::Arc;

use windrow_core::Name;
use windrow_sql::Effect;

use crate::client::Settings;
use crate::pool::{emptied, lasts};
use crate::statements::{CachedStatement, ClientName};

/// The longest SET that is kept, in bytes.
const MAX_SET_BYTES: usize = 1024;

/// The most settings kept for a session.
const MAX_SETTINGS: usize = 64;

/// The most bound statements that change a setting: beyond them the server is asked for the
/// settings.
const MAX_PORTALS: usize = 16;

/// Changes of settings under way.
#[derive(Default)]
pub(super) struct FollowedSettings {
    /// Portals of statements that change a setting.
    portals: Vec<(ClientName, Arc<CachedStatement>)>,
    /// Statements that have changed settings in transactions that are committed.
    kept: Vec<Arc<CachedStatement>>,
    /// Statements that have changed settings in the transaction that is not committed yet.
    changed: Vec<Arc<CachedStatement>>,
    /// Settings of modules that were set for a transaction, or whose SET was rolled back: the
    /// server knows their names from now on.
    local: Vec<Box<str>>,
    /// True if a transaction block has ended since the last ReadyForQuery.
    has_ended: bool,
    /// True if a statement has failed since the last transaction block ended.
    has_failed: bool,
    /// True if a change could not be followed.
    is_lost: bool,
}

impl FollowedSettings {
    /// Returns true if a change could not be followed, once.
    pub(super) fn take_lost(&mut self) -> bool {
        std::mem::take(&mut self.is_lost)
    }

    /// Notes a statement that is sent, or bound to a portal. Its change shows when it is complete.
    pub(super) fn note(&mut self, cached: &Arc<CachedStatement>, portal: Option<&[u8]>) {
        let effect = cached.effect();
        if let Some(Effect::Several(effects)) = effect {
            // The completion of single statements is not followed: all of them are complete, or
            // none, unless they are about transactions.
            self.is_lost |= effects.iter().any(is_change) && !is_all_or_none(effects);
        }
        let Some(portal) = portal else { return };
        self.portals.retain(|(name, _)| **name != *portal);
        if !effect.is_some_and(is_change) && !cached.clears() {
            return;
        }
        match self.portals.len() < MAX_PORTALS {
            true => self.portals.push((portal.into(), Arc::clone(cached))),
            false => self.is_lost = true,
        }
    }

    /// Handles a statement that a text executes by its name: a change is not followed. Returns true
    /// if it sets a setting of a module, whose name the connection will keep.
    pub(super) fn note_executed(&mut self, cached: &CachedStatement) -> bool {
        let effect = cached.effect();
        self.is_lost |= effect.is_some_and(is_change);
        matches!(effect, Some(Effect::Set { name, .. }) if lasts(name))
    }

    /// Notes settings of modules that are set for a transaction.
    pub(super) fn note_local(&mut self, names: &[Box<str>]) {
        let lasting = names.iter().filter(|name| lasts(name));
        self.local.extend(lasting.cloned());
    }

    /// Returns the statement bound to a portal, if it changes a setting.
    pub(super) fn bound(&self, portal: &[u8]) -> Option<Arc<CachedStatement>> {
        let mut bound = self.portals.iter();
        let bound = bound.find(|(name, _)| **name == *portal);
        bound.map(|(_, cached)| Arc::clone(cached))
    }

    /// Notes that a statement is complete. `undoes_part`: it may be a ROLLBACK TO.
    pub(super) fn completed(
        &mut self,
        tag: &[u8],
        cached: Option<Arc<CachedStatement>>,
        undoes_part: bool,
    ) {
        match tag {
            b"COMMIT" | b"PREPARE TRANSACTION" => {
                self.kept.append(&mut self.changed);
                self.end_block();
            }
            // The changes rolled back to a savepoint are not followed.
            b"ROLLBACK" if undoes_part => self.is_lost |= !self.changed.is_empty(),
            b"ROLLBACK" => {
                self.undo();
                self.end_block();
            }
            _ => {}
        }
        let is_followed = |cached: &Arc<CachedStatement>| match cached.effect() {
            Some(Effect::Set { .. } | Effect::ResetAll | Effect::DiscardAll) => true,
            // Each of its statements is reported as complete.
            Some(Effect::Several(effects)) => {
                let is_noted = |last: &Arc<CachedStatement>| Arc::ptr_eq(last, cached);
                is_all_or_none(effects) && !self.changed.last().is_some_and(is_noted)
            }
            _ => false,
        };
        let changes = cached.filter(is_followed);
        self.changed.extend(changes);
    }

    /// Returns true if a setting is changed in the transaction under way.
    pub(super) fn has_changed(&self) -> bool {
        let is_changed = !self.kept.is_empty() || !self.changed.is_empty();
        is_changed || !self.local.is_empty() || !self.portals.is_empty()
    }

    /// Notes an error.
    pub(super) fn failed(&mut self) {
        self.has_failed = true;
    }

    fn end_block(&mut self) {
        (self.has_ended, self.has_failed) = (true, false);
    }

    /// Drops the changes of a transaction that was rolled back.
    fn undo(&mut self) {
        for cached in std::mem::take(&mut self.changed) {
            let set = cached.effect().into_iter().flat_map(lasting);
            self.local.extend(set);
        }
    }

    /// Notes a ReadyForQuery within a transaction block.
    pub(super) fn go_on(&mut self) {
        self.has_ended = false;
    }

    /// Applies the changes to the session's settings, once no transaction is open. `before`: the
    /// status before. Returns true if the settings have changed.
    pub(super) fn settle(&mut self, before: u8, settings: &mut Settings) -> bool {
        self.portals.clear();
        let is_block = before != b'I' && !self.has_ended;
        // A block that ends without a message has failed: its COMMIT was refused.
        if self.has_failed || is_block {
            self.undo();
        }
        (self.has_ended, self.has_failed) = (false, false);
        let mut changed = std::mem::take(&mut self.kept);
        changed.append(&mut self.changed);
        let local = std::mem::take(&mut self.local);
        if local.is_empty() && changed.is_empty() {
            return false;
        }
        let mut set: Vec<(Name, Name)> = settings.set.to_vec();
        for name in local {
            self.is_lost |= !note_local(&mut set, &name);
        }
        for cached in &changed {
            self.is_lost |= match cached.effect() {
                Some(Effect::Several(effects)) => !change_all(&mut set, effects, &cached.text),
                Some(effect) => !change(&mut set, effect, &cached.text),
                None => true,
            };
        }
        settings.set = set.into();
        true
    }
}

/// Returns the settings of modules that a statement sets.
fn lasting(effect: &Effect) -> Vec<Box<str>> {
    match effect {
        Effect::Set { name, .. } if lasts(name) => vec![(&**name).into()],
        Effect::Several(effects) => effects.iter().flat_map(lasting).collect(),
        _ => Vec::new(),
    }
}

/// Returns true for a statement that changes a setting.
fn is_change(effect: &Effect) -> bool {
    matches!(
        effect,
        Effect::Set { .. } | Effect::ResetAll | Effect::DiscardAll | Effect::SetWindrow { .. }
    )
}

/// Returns true if several statements change settings all together or not at all: no transaction
/// ends between them.
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

/// Applies several statements to the list of SETs in force. Returns false if that cannot be
/// followed.
fn change_all(set: &mut Vec<(Name, Name)>, effects: &[Effect], text: &[u8]) -> bool {
    let text = std::str::from_utf8(text).ok();
    let Some(pieces) = text.and_then(windrow_sql::split) else {
        return false;
    };
    let mut is_followed = pieces.len() == effects.len();
    for (effect, piece) in effects.iter().zip(pieces) {
        // Other statements change no setting.
        is_followed &= match effect {
            Effect::Set { .. } | Effect::ResetAll | Effect::DiscardAll => {
                change(set, effect, piece.as_bytes())
            }
            _ => true,
        };
    }
    is_followed
}

/// Applies a statement to the list of SETs in force. Returns false if that cannot be followed.
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
            if text.len() > MAX_SET_BYTES || set.len() >= MAX_SETTINGS {
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

/// Notes a setting of a module that is not in force any more, but whose name is known from now on.
/// Returns false if there are too many.
fn note_local(set: &mut Vec<(Name, Name)>, name: &str) -> bool {
    if set.iter().any(|(other, _)| **other == *name) {
        return true;
    }
    if set.len() >= MAX_SETTINGS {
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

/// Returns the rank of a setting: the role comes first, because it decides which others may be set.
fn rank(name: &str) -> u8 {
    match name {
        "session_authorization" => 0,
        "role" => 1,
        _ => 2,
    }
}
