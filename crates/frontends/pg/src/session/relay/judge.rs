//! Whether what a session has run may have left something behind that nobody else may meet.

use std::hash::BuildHasher;
use std::sync::Arc;

use windrow_core::Apart;
use windrow_sql::Effect;

use super::state::{Relay, lost};
use crate::codec::frame::Front;
use crate::codec::message::Message;
use crate::config::{DatabaseConfig, Unproven};
use crate::pool::lasts;
use crate::proofs::{Asking, Scope, Verdict, of_text};
use crate::session::state::End;
use crate::session_info::Interrupt;
use crate::statements::CachedStatement;

/// The most texts that are judged one by one.
const MOST: usize = 256;

/// The functions by which drivers read and write large objects: what they open is closed with the
/// transaction.
const LARGE_OBJECTS: [u32; 13] = [
    715, 952, 953, 954, 955, 956, 957, 958, 964, 1004, 3170, 3171, 3172,
];

impl Relay<'_> {
    /// Takes note of what a statement that is sent may run.
    pub(super) fn suspect(&mut self, cached: &Arc<CachedStatement>) {
        let effect = cached.reading.effect();
        self.server_state.moved |= changes_scope(&effect);
        if self.changes_what_ran(cached) {
            let late = Apart::of("a change of what may have run before it").unproven();
            self.unproven(late.into());
        }
        if speaks_for_itself(&effect) {
            return;
        }
        let names = cached.names();
        if names.is_none_or(|names| names.has("notify") || names.has("pg_notify")) {
            self.sends_notifications();
        }
        if let Some(names) = names.filter(|names| names.is_about_database()) {
            let databases = &self.session.shared.databases;
            databases.close_idle(|database| names.has(database.target.database()));
        }
        if names.is_none_or(|names| names.changes_catalog()) {
            let (proofs, database) = (&self.session.shared.proofs, self.database());
            let changing = &mut self.server_state.changing;
            changing.get_or_insert_with(|| proofs.changing(&database));
        }
        if self.server_state.for_good {
            return;
        }
        if let Some(apart) = of_text(names.map(|names| &**names), &effect) {
            self.unproven(apart.into());
        }
        let Some(names) = names else { return };
        if names.begins_with(&["listen"]) {
            self.server_state.listens = true;
            self.sends_notifications();
            self.pin("LISTEN");
        }
        self.server_state.unknown |= names.keeps();
        self.server_state.moved |= names.local.iter().any(|name| decides(name));
        let local = names.local.iter().filter(|name| lasts(name));
        self.server_state.local.extend(local.cloned());
        if self.server_state.unproven.is_some() || names.runs_nothing() {
            return;
        }
        let known = {
            let proofs = &self.session.shared.proofs;
            proofs.known(&self.database(), names, self.scope())
        };
        match known {
            Some(verdict) => {
                self.note_verdict(verdict);
                if self.server_state.unproven.is_some() {
                    self.sends_notifications();
                }
            }
            None if self.server_state.unjudged.contains(names) => self.note_doubtful(cached),
            None if self.server_state.unjudged.len() >= MOST => {
                let many = Apart::of("too many statements in one transaction").unproven();
                self.unproven(many.into());
            }
            None => {
                self.server_state.unjudged.push(Arc::clone(names));
                self.note_doubtful(cached);
                self.sends_notifications();
            }
        }
    }

    fn note_verdict(&mut self, verdict: Verdict) {
        match verdict {
            Verdict::Clean(sequences) => self.server_state.sequences.note(&sequences),
            Verdict::Takes(sequences) => {
                self.server_state.generates = true;
                self.server_state.sequences.note(&sequences);
            }
            Verdict::Unproven(apart) => self.unproven(apart),
        }
    }

    /// True for a statement of which is proven that it writes nothing.
    pub(super) fn only_reads(&self, cached: &CachedStatement) -> bool {
        let names = cached.names().filter(|names| {
            let is_plain = cached.effect() == Some(&Effect::Other);
            is_plain && !names.writes() && !names.may_generate && !names.calls("pg_notify")
        });
        names.is_some_and(|names| {
            let proofs = &self.session.shared.proofs;
            let known = || proofs.known(&self.database(), names, self.scope());
            names.runs_nothing() || matches!(known(), Some(Verdict::Clean(_)))
        })
    }

    /// A function call of its own message names its function by number.
    pub(super) fn call_by_number(&mut self, total: usize) {
        let body = self.session.connection.body(0, total);
        let number = body.first_chunk::<4>().copied().map(u32::from_be_bytes);
        let is_proven = number.is_some_and(|number| LARGE_OBJECTS.contains(&number));
        if !is_proven && !self.server_state.for_good {
            let apart = Apart::of("a function called by its number").unproven();
            self.unproven(apart.into());
        }
    }

    /// Unproven code has run, or is about to.
    fn unproven(&mut self, apart: Arc<Apart>) {
        self.session.shared.bypass.note(&self.database(), &apart);
        self.server_state.unproven.get_or_insert(apart);
    }

    /// What the server process sends comes from this session.
    fn sends_notifications(&mut self) {
        let (process, session) = (self.loan.wire.backend_pid(), self.session.info.pid);
        match &self.loan.sender {
            Some(sender) => sender.now_for(session),
            None => {
                let sender = self.session.shared.senders.note(process, session);
                self.loan.sender = Some(sender);
            }
        }
    }

    /// What decides which tables names mean.
    fn scope(&self) -> Scope {
        if self.server_state.moved {
            return Scope::Any;
        }
        let who = &self.session.who;
        let hasher = foldhash::fast::FixedState::default();
        Scope::Of(hasher.hash_one((&who.identity.role, &who.settings)))
    }

    fn database(&self) -> windrow_core::Name {
        self.session.who.identity.database.clone()
    }

    /// True if a statement may take away or change something that statements before it have run,
    /// and that the catalog was not asked about yet.
    fn changes_what_ran(&self, cached: &CachedStatement) -> bool {
        let server_state = &self.server_state;
        if server_state.unjudged.is_empty() || server_state.unproven.is_some() {
            return false;
        }
        let is_changed = server_state.changing.is_some();
        let names = cached.names();
        names.is_some_and(|names| names.may_change_what_ran(is_changed))
    }

    /// True if the next message waits until the catalog is asked about the statements before it.
    pub(super) fn has_to_judge_first(&self) -> bool {
        // In a failed transaction nothing can be asked, nor within a segment.
        if self.server_state.unjudged.is_empty() || self.open || self.status == b'E' {
            return false;
        }
        if self.server_state.for_good || self.server_state.listens || self.queue.skipping {
            return false;
        }
        let Ok(Front::Whole { tag, total }) = self.session.connection.front(0) else {
            return false;
        };
        let message = Message::read(tag, self.session.connection.body(0, total));
        self.to_server == 0
            && self
                .statement_of(&message)
                .is_some_and(|cached| self.changes_what_ran(&cached))
    }

    /// True if that can be asked now.
    pub(super) fn judges_first(&mut self) -> bool {
        self.is_quiet() && self.has_to_judge_first()
    }

    /// Something has to be found out, or done about what was found, before the connection can be
    /// given back.
    pub(super) fn has_to_be_judged(&self) -> bool {
        let server_state = &self.server_state;
        !server_state.unjudged.is_empty()
            || (server_state.unproven.is_some() && !self.may_be_reset())
    }

    fn may_be_reset(&self) -> bool {
        let Some(apart) = &self.server_state.unproven else {
            return false;
        };
        let role = &self.session.who.identity.role;
        self.config()
            .is_some_and(|config| config.unproven.of(role, &apart.object) == Unproven::Reset)
    }

    fn config(&self) -> Option<&DatabaseConfig> {
        let session = &*self.session;
        session
            .shared
            .databases
            .find(&session.who.identity.database)
    }

    /// Asks what is not known yet. Nothing is under way.
    pub(super) async fn judge(&mut self) -> Result<(), End> {
        let info = Arc::clone(&self.session.info);
        let unjudged = std::mem::take(&mut self.server_state.unjudged);
        if self.server_state.unproven.is_some() {
            self.server_state.sequences.note_others();
        } else {
            // A cancel request that is on its way must not meet the question.
            info.set_interrupt(Interrupt::Nothing).await;
            if !self.loan.wire.settle() {
                return Err(End::Fatal(lost()));
            }
            let (shared, database) = (Arc::clone(&self.session.shared), self.database());
            let trusted = self.config().map(|config| Arc::clone(&config.trusted));
            let (scope, trusted) = (self.scope(), trusted.unwrap_or_default());
            // A simple query takes the unnamed statement away.
            self.loan.names.unnamed = None;
            let settings = self.session.who.settings.set.clone();
            let set = settings.iter().filter(|(name, _)| decides(name));
            let set: Vec<&str> = set.map(|(_, statement)| &**statement).collect();
            let asking = Asking {
                set: &set,
                in_transaction: self.status != b'I',
            };
            for names in &unjudged {
                let wire = &mut self.loan.wire;
                let judgement = shared
                    .proofs
                    .ask(wire, &database, (names, scope), asking, &trusted)
                    .await
                    .map_err(|_| End::Fatal(lost()))?;
                if judgement.has_changed {
                    shared.databases.pool.retire(&database);
                }
                self.server_state.is_doubted |= judgement.is_new;
                self.note_verdict(judgement.verdict);
                if self.server_state.unproven.is_some() {
                    break;
                }
            }
            self.server_state.moved &= self.status != b'I';
            self.loan.wire.take_over();
            let key = self.loan.wire.cancel_key();
            info.set_interrupt(Interrupt::Server(key)).await;
        }
        self.conclude();
        Ok(())
    }

    /// Keeps the connection for good, where that is what unproven code asks for.
    fn conclude(&mut self) {
        if let Some(apart) = self.server_state.unproven.clone()
            && !self.may_be_reset()
        {
            self.server_state.for_good = true;
            self.sends_notifications();
            self.pin(apart.to_string());
        }
    }
}

/// True for settings that decide which tables are meant, and for whom.
fn decides(setting: &str) -> bool {
    matches!(
        setting,
        "search_path" | "role" | "session_authorization" | "schema"
    )
}

fn changes_scope(effect: &Effect) -> bool {
    match effect {
        Effect::Set { name, .. } => decides(name),
        Effect::ResetAll | Effect::DiscardAll => true,
        Effect::Several(effects) => effects.iter().any(changes_scope),
        _ => false,
    }
}

/// True where the text says all that a statement does.
fn speaks_for_itself(effect: &Effect) -> bool {
    if let Effect::Several(effects) = effect {
        return effects.iter().all(speaks_for_itself);
    }
    matches!(
        effect,
        Effect::Begin
            | Effect::End
            | Effect::Set { .. }
            | Effect::ResetAll
            | Effect::DiscardAll
            | Effect::SetWindrow { .. }
            | Effect::ShowWindrow { .. }
            | Effect::Lastval
            | Effect::Currval(_)
            | Effect::Empty
    )
}
