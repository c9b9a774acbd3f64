//! Joins single-row writes: they go to the lane of the session's settings.

use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use windrow_core::{
    Arguments, Fault, Formats, Origin, SqlCall, Statement, TraceContext, TracedRequest, Unit,
    UnitOutcome, Write, WriteDone,
};
use windrow_mysqlwire::query::{collation_place, put_query, read_reply, text_row};
use windrow_mysqlwire::{
    ErrorPacket, Head, LaneLogin, MariadbCapabilities, Reply, Success, WriteAnswer, WriteFailure,
    lane_question, lane_variables, put_columns, put_result,
};
use windrow_sql::mysql::{LiftedText, lift, mentions_row_count};

use super::client_session::{Session, SessionEnd};
use super::outcome::{end_trace, outcome};
use super::rows::{self, RowWay};
use crate::errors;
use crate::lanes::{Lane, NoLane, TextVerdict};
use crate::not_joined::NotJoined;
use crate::prepared::Execution;
use crate::register::Interrupt;
use crate::session_state::{LastWrite, UnsharedLane};

/// The reason for a session whose server reports more with each write.
const TRACKED: &str = "session_track_gtids or session_track_transaction_info";

/// The reason for executions of a session that has set a collation by itself.
const OTHER_COLLATION: NotJoined =
    NotJoined::For("a collation of parameters that SET NAMES did not set");

/// The reason for all writes if the configuration says so.
const JOIN_OFF: NotJoined = NotJoined::For("mysql.join is false");

/// The reason for a session whose writes would share a lane with nobody's.
const UNSHARED: NotJoined = NotJoined::For("settings that no other session has");

/// The reason for a lane whose database does not answer.
const NO_ANSWER: NotJoined = NotJoined::For("its lane does not answer");

/// The collation of columns that hold no text.
const BINARY: [u8; 2] = [63, 0];

/// The result of an attempt to join a statement, unless the session ends.
type Join = Result<Result<(), NotJoined>, SessionEnd>;

impl Session {
    /// Joins a statement that comes as a text, if it can be joined.
    pub(super) async fn join_text(&mut self, head: Head) -> Join {
        // The question for the settings must not come before one for the counts.
        if self.text(head).is_none_or(mentions_row_count) {
            return Ok(Err(NotJoined::NoWrite));
        }
        let lane = match self.lane().await? {
            Ok(lane) => lane,
            Err(not) => return Ok(Err(not)),
        };
        let (Some(modes), Some(text)) = (lane.modes(), self.text(head)) else {
            return Ok(Err(NotJoined::For("an sql_mode that is not read")));
        };
        if !lane.reads(text) {
            return Ok(Err(NotJoined::For("a character set that is not read")));
        }
        let Some(lifted) = lift(text, modes) else {
            return Ok(Err(NotJoined::NoWrite));
        };
        let text = Arc::<[u8]>::from(text.as_bytes());
        let statement = match statement(&lane, &lifted.text).await {
            Ok(statement) => statement,
            Err(not) => return Ok(Err(not)),
        };
        match text_call(statement, text, &lifted) {
            Some(call) => self.submit(call, head).await,
            None => Ok(Err(NotJoined::For("a long text"))),
        }
    }

    /// Joins the execution of a prepared statement, if it can be joined.
    pub(super) async fn join_execution(&mut self, head: Head) -> Join {
        if self.state.has_other_collation() {
            return Ok(Err(OTHER_COLLATION));
        }
        let content = self.admitted.client.content(head);
        let text = match self.prepared.get_mut(content) {
            Some(prepared) => match &prepared.text {
                Some(_) if prepared.asks_for_last_write => return Ok(Err(NotJoined::NoWrite)),
                Some(_) if prepared.settings_changes != self.state.settings_changes() => {
                    return Ok(Err(NotJoined::For("prepared under other settings")));
                }
                Some(text) if !prepared.has_long_data => text.clone(),
                Some(_) => return Ok(Err(NotJoined::For("a value that was sent in parts"))),
                None => return Ok(Err(NotJoined::NoWrite)),
            },
            None => return Ok(Err(NotJoined::NoWrite)),
        };
        let lane = match self.lane().await? {
            Ok(lane) => lane,
            Err(not) => return Ok(Err(not)),
        };
        if !lane.reads(&text) {
            return Ok(Err(NotJoined::For("a character set that is not read")));
        }
        let statement = match statement(&lane, &text).await {
            Ok(statement) => statement,
            Err(not) => return Ok(Err(not)),
        };
        match self.arguments(head) {
            Some(arguments) => {
                let call = SqlCall {
                    statement,
                    arguments,
                    formats: Formats::Binary,
                    results: Formats::Binary,
                    fresh: false,
                    origin: None,
                };
                self.submit(call, head).await
            }
            None => Ok(Err(NotJoined::For(
                "an execution with a cursor or attributes",
            ))),
        }
    }

    /// Returns the values of an execution, and remembers their types.
    pub(super) fn arguments(&mut self, head: Head) -> Option<Arguments> {
        let content = self.admitted.client.content(head);
        let prepared = self.prepared.get_mut(content)?;
        let execution = Execution::read(content, prepared.parameters)?;
        if let Some(types) = execution.types {
            prepared.types = Some(types.into());
            prepared.server_has_types = false;
            prepared.charset = self.state.source.as_ref().map(|s| s.lane.charset());
        }
        match &prepared.types {
            Some(types) => execution.arguments(types),
            None if prepared.parameters > 0 => None,
            None => execution.arguments(&[]),
        }
    }

    /// Returns true if columns are described with MariaDB's extended metadata.
    fn has_extended_metadata(&self) -> bool {
        let extended = MariadbCapabilities::MARIADB_CLIENT_EXTENDED_METADATA;
        self.admitted.request.extended.contains(extended)
    }

    /// Returns the session's lane. Asks the session's server connection for its settings if they
    /// may have changed.
    pub(super) async fn lane(&mut self) -> Result<Result<Arc<Lane>, NotJoined>, SessionEnd> {
        if !self.shared.config.join {
            return Ok(Err(JOIN_OFF));
        }
        if let Some(reason) = self.state.hindrance() {
            return Ok(Err(NotJoined::For(reason)));
        }
        if self.state.source.is_none()
            && let Err(not) = self.enter_lane().await?
        {
            return Ok(Err(not));
        }
        let source = self.state.source.as_ref();
        let lane = source.map(|source| Arc::clone(&source.lane));
        Ok(lane.ok_or(NO_ANSWER))
    }

    /// Makes the session a source of the lane of its settings.
    async fn enter_lane(&mut self) -> Result<Result<(), NotJoined>, SessionEnd> {
        let is_due = rows::has_asked(self);
        let login = match self.state.wanted.take() {
            // Another session may have come.
            Some(unshared) if !is_due && Arc::strong_count(&unshared.wanted) < 2 => {
                self.state.wanted = Some(unshared);
                return Ok(Err(UNSHARED));
            }
            Some(unshared) => unshared.login,
            None => match self.login().await? {
                Some(login) => login,
                None => {
                    self.state.relay_for("settings that cannot be read");
                    return Ok(Err(NotJoined::For("settings that cannot be read")));
                }
            },
        };
        if login.tracks_transactions() {
            self.state.relay_for(TRACKED);
            return Ok(Err(NotJoined::For(TRACKED)));
        }
        let is_mariadb = self.shared.is_mariadb();
        match self.shared.lanes.enter(&login, is_mariadb, is_due) {
            Ok(source) => self.state.source = Some(source),
            Err(NoLane::Unshared(wanted)) => {
                self.state.wanted = Some(UnsharedLane { wanted, login });
                return Ok(Err(UNSHARED));
            }
            Err(NoLane::Refused(fault)) => {
                tracing::warn!(%fault, "a session has no lane");
                return Ok(Err(NotJoined::For("more lanes than mysql.max_lanes")));
            }
        }
        Ok(Ok(()))
    }

    /// Asks the session's server connection for the settings that a lane has to share.
    pub(super) async fn login(&mut self) -> Result<Option<LaneLogin>, SessionEnd> {
        let is_mariadb = self.shared.is_mariadb();
        let has_attributes = self.has_attributes();
        let server = &mut self.admitted.server;
        let question = lane_question(lane_variables(is_mariadb));
        put_query(&mut server.wire, &question, has_attributes);
        server.wire.flush().await?;
        let reply = read_reply(&mut server.wire, server.forms).await?;
        self.state.heard();
        if let Reply::Error(error) = &reply {
            let error = ErrorPacket::parse(error).map(|error| error.to_string());
            tracing::warn!(?error, "the settings of a session cannot be read");
        }
        let Reply::Rows(result, _) = reply else {
            return Ok(None);
        };
        let is_extended = self.has_extended_metadata();
        self.state.results_collation = result.columns.first().and_then(|column| {
            let place = collation_place(column, is_extended)?;
            column.get(place..place + 2)?.try_into().ok()
        });
        let Some(row) = result.rows.into_iter().next().map(text_row) else {
            return Ok(None);
        };
        let mut values = row.into_iter().map(|value| {
            let value = value.map(|value| String::from_utf8_lossy(&value).into_owned());
            value.map(String::into_boxed_str)
        });
        let database = values.next().flatten();
        let variables: Box<[_]> = lane_variables(is_mariadb).zip(values).collect();
        let is_whole = variables.len() == lane_variables(is_mariadb).count();
        let mut variable = variables.iter();
        if variable.any(|(name, value)| *name == "character_set_results" && value.is_none()) {
            // Each column of a result has its own collation then.
            self.state.results_collation = None;
        }
        let request = &self.admitted.request;
        Ok(is_whole.then(|| LaneLogin {
            user: request.user.as_slice().into(),
            credential: self.admitted.server.credential.clone(),
            database,
            counts_found_rows: request.counts_found_rows(),
            ignores_space: request.ignores_space(),
            has_extended_metadata: self.has_extended_metadata(),
            variables,
        }))
    }

    /// Submits a call to the lane and answers the client. If the session's server connection was
    /// not used for a while, it gets a ping meanwhile.
    async fn submit(&mut self, call: SqlCall, head: Head) -> Join {
        if self.state.is_unheard() && rows::may_write(self) {
            self.send_ping().await?;
            self.end_ping().await?;
        }
        if let RowWay::Answered = rows::write(self, &call, head).await? {
            return Ok(Ok(()));
        }
        if !self.state.is_unheard() {
            return self.submit_call(call, head).await;
        }
        self.send_ping().await?;
        let joined = self.submit_call(call, head).await?;
        self.end_ping().await?;
        Ok(joined)
    }

    /// Submits a call to the lane, and passes its outcome to the client.
    async fn submit_call(&mut self, call: SqlCall, head: Head) -> Join {
        let has_rows = call.statement.parsed().returning.is_some();
        let caller = self.caller(&call, head);
        let unit = Unit::one(Write::from(call));
        let Some(source) = &self.state.source else {
            return Ok(Err(NO_ANSWER));
        };
        let (intake, id) = (source.lane.ports.intake.clone(), source.id);
        let Ok(permit) = intake.budget().try_take(unit.bytes()) else {
            return Ok(Err(NotJoined::For("the memory of limits.memory is full")));
        };
        let info = Arc::clone(&self.admitted.entry.info);
        info.set_interrupt(Some(Interrupt::Lane(intake.clone(), id)));
        let traced = self.begin_trace(caller, &unit);
        let trace = traced.as_ref().map(|traced| traced.trace());
        let submitted = intake.submit_traced(id, [unit], permit, trace).await;
        let Ok(receipt) = submitted else {
            info.set_interrupt(None);
            self.state.source = None;
            if let Some(traced) = traced {
                traced.discard();
            }
            return Ok(Err(NotJoined::For("its lane has ended")));
        };
        let client = &mut self.admitted.client;
        client.skip(head);
        let outcome = outcome(client, receipt, || intake.closed(id)).await;
        info.set_interrupt(None);
        end_trace(traced, &outcome);
        self.shared.metrics.joined.inc();
        self.admitted.client.set_next(head.number.wrapping_add(1));
        self.put_outcome(outcome, has_rows);
        self.admitted.client.flush().await?;
        Ok(Ok(()))
    }

    /// Returns the client's own span, if the text, its comment or the session names one.
    pub(super) fn caller(&mut self, call: &SqlCall, head: Head) -> Option<TraceContext> {
        self.shared.tracer.as_ref()?;
        let content = self.admitted.client.content(head);
        let commented = match &call.origin {
            Some(origin) => TraceContext::of_comment(origin.as_str()),
            None => self.prepared.get_mut(content)?.caller.take(),
        };
        commented.or(self.own.traceparent)
    }

    /// Begins the span of a unit that is about to be submitted, if it is to be collected.
    pub(super) fn begin_trace(
        &self,
        caller: Option<TraceContext>,
        unit: &Unit,
    ) -> Option<Box<TracedRequest>> {
        let tracer = self.shared.tracer.as_ref()?;
        let lane = &self.state.source.as_ref()?.lane;
        TracedRequest::of_statement(tracer, caller, SystemTime::now(), lane.database(), unit)
    }

    fn put_outcome(&mut self, outcome: UnitOutcome, has_rows: bool) {
        match outcome {
            Ok(mut dones) => {
                let done = dones.pop().unwrap_or_default();
                self.put_done(&done, has_rows);
            }
            Err(failed) => self.put_fault(&failed.fault),
        }
    }

    pub(super) fn put_fault(&mut self, fault: &Fault) {
        let failure = fault.verbatim().and_then(WriteFailure::decode);
        let mut failure = failure.unwrap_or_else(|| WriteFailure {
            error: errors::of_fault(fault).encode().into(),
            ..WriteFailure::default()
        });
        if !failure.columns.is_empty() {
            self.set_collation(&mut failure.columns);
            let status = self.state.status_of_write();
            let forms = self.admitted.server.forms;
            put_columns(&mut self.admitted.client, forms, &failure.columns, status);
        }
        self.admitted.client.put(&failure.error);
        self.state.last_write = Some(LastWrite::failed(failure));
    }

    /// Writes the session's collation into columns of text. A lane has the character set of its
    /// sessions, but not the collation that each has chosen for results.
    fn set_collation(&self, columns: &mut [Bytes]) {
        let Some(collation) = self.state.results_collation else {
            return;
        };
        for column in columns {
            let Some(place) = collation_place(column, self.has_extended_metadata()) else {
                continue;
            };
            let mut content = column.to_vec();
            if let Some(own) = content.get_mut(place..place + 2)
                && *own != BINARY
            {
                own.copy_from_slice(&collation);
                *column = content.into();
            }
        }
    }

    fn put_done(&mut self, done: &WriteDone, has_rows: bool) {
        let extra = done.extra.as_ref();
        let answer = extra.and_then(|extra| WriteAnswer::decode(&extra.messages));
        let mut answer = answer.unwrap_or_default();
        if let Some(result) = &mut answer.result {
            self.set_collation(&mut result.columns);
        }
        let success = Success {
            affected: done.rows,
            insert_id: answer.insert_id,
            status: self.state.status_of_write(),
            warning_count: answer.warning_count,
            info: answer.info,
        };
        let (client, forms) = (&mut self.admitted.client, self.admitted.server.forms);
        match (&answer.result, has_rows) {
            (Some(result), true) => {
                let end = Success {
                    affected: 0,
                    insert_id: 0,
                    ..success
                };
                put_result(client, forms, result, &end);
            }
            _ => client.put(&success.encode()),
        }
        if answer.last_insert_id.is_some() {
            self.state.insert_id = answer.last_insert_id;
        }
        self.state.last_write = Some(LastWrite {
            affected: answer.result.is_none().then_some(done.rows),
            warnings: answer.warnings,
            error: None,
            is_behind_question: false,
        });
    }
}

/// Returns the statement of a text, if its calls can be joined.
async fn statement(lane: &Lane, text: &str) -> Result<Arc<Statement>, NotJoined> {
    let modes = lane.modes().ok_or(NotJoined::NoWrite)?;
    let verdict = match lane.known(text) {
        Some(known) => known,
        None => lane.describe(text, modes).await.map_err(|fault| {
            tracing::warn!(%fault, "a lane does not answer");
            NO_ANSWER
        })?,
    };
    match verdict {
        TextVerdict::Joined(statement) => Ok(statement),
        TextVerdict::Apart(apart, _) => Err(NotJoined::For(apart.phrase)),
        TextVerdict::Unread(reason) => Err(NotJoined::For(reason)),
    }
}

/// Returns the call of a text. `None` if the text is too long.
fn text_call(statement: Arc<Statement>, text: Arc<[u8]>, lifted: &LiftedText) -> Option<SqlCall> {
    let mut bytes = Vec::new();
    for literal in &lifted.literals {
        let spelled = text.get(literal.clone())?;
        bytes.extend_from_slice(&i32::try_from(spelled.len()).ok()?.to_be_bytes());
        bytes.extend_from_slice(spelled);
    }
    Some(SqlCall {
        statement,
        arguments: Arguments::of(bytes, lifted.literals.len())?,
        formats: Formats::Text,
        results: Formats::Text,
        fresh: false,
        origin: Some(Box::new(Origin { text, own: None })),
    })
}
