//! Proves that the statements of a session leave nothing on its server connection that affects
//! other sessions: by the kinds of the statements, and by the catalog.

use std::hash::BuildHasher;
use std::sync::Arc;

use smallvec::smallvec;
use windrow_core::Apart;
use windrow_sql::{Commits, Effect, Names, Property};

use super::ends::{Ends, lost};
use super::leftovers::Leftovers;
use super::portals::Committing;
use super::sequences::named_in;
use crate::config::{DatabaseConfig, Unproven};
use crate::proofs::{Asking, Scope, Verdict, of_text};
use crate::session::state::End;
use crate::statements::CachedStatement;

/// The most texts that are judged one by one.
const MAX_UNJUDGED: usize = 256;

/// Functions by which drivers read and write large objects. All that they open is closed with the
/// transaction.
const LARGE_OBJECTS: [u32; 13] = [
    715, 952, 953, 954, 955, 956, 957, 958, 964, 1004, 3170, 3171, 3172,
];

impl Leftovers {
    /// Notes everything that a statement which is sent may run.
    pub(super) fn suspect(&mut self, ends: &mut Ends<'_>, cached: &Arc<CachedStatement>) {
        let effect = cached.reading.effect();
        self.has_moved |= changes_scope(&effect);
        if self.changes_what_ran(cached) {
            let late = Apart::of("a change of what may have run before it").unproven();
            self.note_unproven(ends, late.into());
        }
        if speaks_for_itself(&effect) {
            return;
        }
        let names = cached.names();
        if names.is_none_or(|names| names.has("notify") || names.has("pg_notify")) {
            sends_notifications(ends);
        }
        if let Some(names) = names.filter(|names| names.is_about_database()) {
            let databases = &ends.session.shared.databases;
            databases.close_idle(|database| names.has(database.target.database()));
        }
        if names.is_none_or(|names| names.changes_catalog()) {
            let proofs = &ends.session.shared.proofs;
            self.changing
                .get_or_insert_with(|| proofs.changing(&ends.database()));
        }
        if self.is_for_good {
            return;
        }
        if let Some(apart) = of_text(names.map(|names| &**names), &effect) {
            self.note_unproven(ends, apart.into());
        }
        let Some(names) = names else { return };
        if names.begins_with(&["listen"]) {
            sends_notifications(ends);
            self.listen(ends);
        }
        self.note_kept(names);
        self.has_moved |= names.local.iter().any(|name| decides(name));
        self.settings.note_local(&names.local);
        if self.unproven.is_some() || names.runs_nothing() {
            return;
        }
        if let Some(verdict) = self.verdict(ends, cached) {
            self.note_verdict(ends, verdict);
            if self.unproven.is_some() {
                sends_notifications(ends);
            }
        } else if !self.unjudged.contains(names) {
            self.postpone(ends, names);
        }
    }

    /// Notes the session's statements that a text executes by their names. Returns true if one of
    /// them is not judged yet.
    pub(super) fn note_executed(
        &mut self,
        ends: &mut Ends<'_>,
        cached: &Arc<CachedStatement>,
    ) -> bool {
        let mut is_unjudged = false;
        for executed in ends.executed_by(cached) {
            if let Some(named) = named_in(&executed, &executed.text) {
                self.sequences.note_named(named);
            }
            let names = executed.names();
            self.generates |= names.is_none_or(|names| names.may_generate);
            self.suspect(ends, &executed);
            if self.settings.note_executed(&executed) && !self.is_for_good {
                let setting = Apart::of("a setting of a module in a prepared statement").unproven();
                self.note_unproven(ends, setting.into());
            }
            is_unjudged |= self.is_unjudged(&executed);
        }
        is_unjudged
    }

    /// Leaves a statement to be judged before the connection is given back.
    pub(super) fn postpone(&mut self, ends: &mut Ends<'_>, names: &Arc<Names>) {
        if self.unjudged.len() >= MAX_UNJUDGED {
            let many = Apart::of("too many statements in one transaction").unproven();
            return self.note_unproven(ends, many.into());
        }
        self.unjudged.push(Arc::clone(names));
        sends_notifications(ends);
    }

    /// Returns true if a statement is not judged yet.
    pub(super) fn is_unjudged(&self, cached: &CachedStatement) -> bool {
        let names = cached.names();
        names.is_some_and(|names| self.unjudged.contains(names))
    }

    fn note_verdict(&mut self, ends: &Ends<'_>, verdict: Verdict) {
        match verdict {
            Verdict::Clean { sequences, .. } => self.sequences.note(&sequences),
            Verdict::Takes(sequences) => {
                self.generates = true;
                self.sequences.note(&sequences);
            }
            Verdict::Unproven(apart) => self.note_unproven(ends, apart),
        }
    }

    /// Returns what is known of a statement without asking.
    pub(super) fn verdict(&self, ends: &Ends<'_>, cached: &CachedStatement) -> Option<Verdict> {
        let (proofs, names) = (&ends.session.shared.proofs, cached.names()?);
        proofs.known(&ends.database(), names, self.scope(ends))
    }

    /// Returns true for a statement that is proven to write nothing except that it may take values
    /// from sequences that its text names.
    fn is_proven_to_read(&self, ends: &Ends<'_>, cached: &CachedStatement) -> bool {
        is_query(cached) && matches!(self.verdict(ends, cached), Some(Verdict::Clean { .. }))
    }

    /// Returns true for such a statement that runs only the code that its text shows.
    pub(super) fn is_proven_to_show(&self, ends: &Ends<'_>, cached: &CachedStatement) -> bool {
        let shows = |verdict| {
            matches!(
                verdict,
                Verdict::Clean {
                    runs_hidden: false,
                    ..
                }
            )
        };
        is_query(cached) && self.verdict(ends, cached).is_some_and(shows)
    }

    /// Returns the effects of a statement on the transaction, in the order of its text.
    pub(super) fn commits(&self, ends: &Ends<'_>, cached: &CachedStatement) -> Committing {
        if cached.parsed().is_some() {
            return smallvec![Commits::AtSync];
        }
        let may_generate = cached.names().is_none_or(|names| names.may_generate);
        if !may_generate && self.is_proven_to_read(ends, cached) {
            return Committing::new();
        }
        match cached.steps() {
            Some(steps) => steps.iter().map(|step| step.commits).collect(),
            None => smallvec![Commits::Anytime],
        }
    }

    /// Notes a function call of its own message, which names its function by number.
    pub(super) fn call_by_number(&mut self, ends: &Ends<'_>, total: usize) {
        let body = ends.session.connection.body(0, total);
        let number = body.first_chunk::<4>().copied().map(u32::from_be_bytes);
        let is_proven = number.is_some_and(|number| LARGE_OBJECTS.contains(&number));
        if !is_proven && !self.is_for_good {
            let apart = Apart::of("a function called by its number").unproven();
            self.note_unproven(ends, apart.into());
        }
    }

    /// Notes unproven code that has run, or is about to.
    fn note_unproven(&mut self, ends: &Ends<'_>, apart: Arc<Apart>) {
        ends.session.shared.bypass.note(&ends.database(), &apart);
        self.unproven.get_or_insert(apart);
    }

    /// Returns the tables that names mean.
    fn scope(&self, ends: &Ends<'_>) -> Scope {
        if self.has_moved {
            return Scope::Any;
        }
        let who = &ends.session.who;
        let hasher = foldhash::fast::FixedState::default();
        Scope::Of(hasher.hash_one((&who.identity.role, &who.settings)))
    }

    /// Returns true if a statement may remove or change objects that earlier statements have used
    /// and that are not judged yet.
    fn changes_what_ran(&self, cached: &CachedStatement) -> bool {
        if self.unjudged.is_empty() || self.unproven.is_some() {
            return false;
        }
        let is_changed = self.changing.is_some();
        let names = cached.names();
        names.is_some_and(|names| names.may_change_what_ran(is_changed))
    }

    /// Returns true if the next message waits until the statements before it are judged.
    pub(super) fn has_to_judge_first(&self, ends: &Ends<'_>) -> bool {
        // Nothing can be asked in a failed transaction or within a segment.
        if self.unjudged.is_empty() || ends.is_open || ends.status == b'E' {
            return false;
        }
        if self.is_for_good || self.is_listening() || ends.queue.skipping {
            return false;
        }
        let Some((tag, total)) = ends.front() else {
            return false;
        };
        let cached = ends.statement_of(&ends.message(tag, total));
        cached.is_some_and(|cached| {
            let mut executed = ends.executed_by(&cached).into_iter();
            self.changes_what_ran(&cached) || executed.any(|one| self.changes_what_ran(&one))
        })
    }

    /// Returns true if something must be found out, or done about a finding, before the connection
    /// can be given back.
    pub(super) fn has_to_be_judged(&self, ends: &Ends<'_>) -> bool {
        !self.unjudged.is_empty() || (self.unproven.is_some() && !self.may_be_reset(ends))
    }

    fn may_be_reset(&self, ends: &Ends<'_>) -> bool {
        let Some(apart) = &self.unproven else {
            return false;
        };
        let role = &ends.session.who.identity.role;
        config(ends)
            .is_some_and(|config| config.unproven.of(role, &apart.object) == Unproven::Reset)
    }

    /// Asks the catalog about the statements that are not judged yet. Nothing may be under way.
    ///
    /// # Errors
    /// The connection is lost.
    pub(super) async fn judge(&mut self, ends: &mut Ends<'_>) -> Result<(), End> {
        let unjudged = std::mem::take(&mut self.unjudged);
        if self.unproven.is_some() {
            self.sequences.note_others();
        } else {
            ends.begin_questions().await?;
            for names in &unjudged {
                self.ask(ends, names).await?;
                if self.unproven.is_some() {
                    break;
                }
            }
            self.has_moved &= ends.status != b'I';
            ends.end_questions().await;
        }
        if let Some(apart) = self.unproven.clone()
            && !self.may_be_reset(ends)
        {
            self.is_for_good = true;
            sends_notifications(ends);
            self.pin(ends, apart.to_string());
        }
        Ok(())
    }

    async fn ask(&mut self, ends: &mut Ends<'_>, names: &Arc<Names>) -> Result<(), End> {
        let (shared, database) = (Arc::clone(&ends.session.shared), ends.database());
        let trusted = config(ends).map(|config| Arc::clone(&config.trusted));
        let (scope, trusted) = (self.scope(ends), trusted.unwrap_or_default());
        // A simple query removes the unnamed statement.
        ends.loan.names.unnamed = None;
        let settings = ends.session.who.settings.set.clone();
        let set = settings.iter().filter(|(name, _)| decides(name));
        let set: Vec<&str> = set.map(|(_, statement)| &**statement).collect();
        let asking = Asking {
            set: &set,
            in_transaction: ends.status != b'I',
        };
        let wire = &mut ends.loan.wire;
        let asked = shared
            .proofs
            .ask(wire, &database, (names, scope), asking, &trusted);
        let judgement = asked.await.map_err(|_| End::Fatal(lost()))?;
        if judgement.has_changed {
            shared.databases.pool.retire(&database);
        }
        self.is_doubted |= judgement.is_new;
        self.note_verdict(ends, judgement.verdict);
        Ok(())
    }
}

/// Returns true for a query that writes nothing itself.
fn is_query(cached: &CachedStatement) -> bool {
    cached.effect() == Some(&Effect::Other)
        && cached.names().is_some_and(|names| {
            // Only these kinds run no code besides what their text shows.
            let reads = names.all_are(&[Property::Reads]) && !names.begins_with(&["prepare"]);
            reads && !names.writes() && !names.calls_writing()
        })
}

/// Notes that the notifications of the server process come from this session.
fn sends_notifications(ends: &mut Ends<'_>) {
    let (process, session) = (ends.loan.wire.backend_pid(), ends.session.info.pid);
    match &ends.loan.sender {
        Some(sender) => sender.now_for(session),
        None => {
            let sender = ends.session.shared.senders.note(process, session);
            ends.loan.sender = Some(sender);
        }
    }
}

fn config<'e>(ends: &'e Ends<'_>) -> Option<&'e DatabaseConfig> {
    let session = &*ends.session;
    let databases = &session.shared.databases;
    databases.find(&session.who.identity.database)
}

/// Returns true for settings that decide the role, and which tables names mean.
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

/// Returns true if the text shows everything that a statement does.
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
