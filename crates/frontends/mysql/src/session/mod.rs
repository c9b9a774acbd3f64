//! The loop of one client: its single-row writes go to a lane, all other commands to the session's
//! server connection. A client's next command waits until the answer has ended, as at the server.

mod another_user;
mod client_session;
mod join;
mod outcome;
mod own_answer;
mod relay;
mod rows;

use std::sync::Arc;

use tokio::time::timeout;
use windrow_core::{Arguments, FaultClass};
use windrow_mysqlwire::command;
use windrow_mysqlwire::{Answer, CapabilityFlags, ErrorPacket, Head, StatusFlags};
use windrow_sql::mysql::{
    AssignedValue, Modes, SessionEffect, effect, effect_in_any_mode, mentions_insert_id,
    mentions_row_count, own_name_among_several, own_settings, question,
};

use self::client_session::{Session, SessionEnd};
use crate::admit::{AdmittedClient, MAX_LOGIN_BYTES};
use crate::errors;
use crate::not_joined::{NO_ROW, NotJoined};
use crate::own_settings::OwnSettings;
use crate::prepared::{PreparedStatements, may_be_write};
use crate::session_state::{LastWrite, SessionState};
use crate::shared::Shared;
use crate::statement_kind::StatementKind;

/// The longest statement that is read, in bytes. Longer ones are relayed.
const MAX_STATEMENT_BYTES: usize = 256 * 1024;

/// The bytes of a command that must have arrived before it is examined.
const FIRST_BYTES: usize = 16;

/// Serves a client until it leaves, its server connection ends, or the frontend does.
pub(crate) async fn run(shared: Arc<Shared>, admitted: AdmittedClient) {
    let info = Arc::clone(&admitted.entry.info);
    let close_limit = shared.config.connect_timeout;
    let mut session = Session {
        shared,
        state: SessionState::new(admitted.server.status),
        admitted,
        own: OwnSettings::default(),
        spooled: None,
        prepared: PreparedStatements::default(),
    };
    let ended = tokio::select! {
        biased;
        () = info.revoked.cancelled() => SessionEnd::Said(FaultClass::Denied, errors::revoked()),
        ended = session.serve() => ended,
    };
    let Session {
        admitted, shared, ..
    } = session;
    let mut client = admitted.client;
    if let SessionEnd::Said(class, error) = ended
        && !client.is_within_packet()
    {
        shared.metrics.refusal(class);
        client.put(&error.encode());
    }
    // Closing must not wait for a client that does not read.
    drop(timeout(close_limit, client.close()).await);
}

impl Session {
    async fn serve(&mut self) -> SessionEnd {
        loop {
            let next = self.next().await;
            let done = match next {
                Ok(head) => self.command(head).await,
                Err(ended) => return ended,
            };
            if let Err(ended) = done {
                return ended;
            }
        }
    }

    /// Waits for a command.
    async fn next(&mut self) -> Result<Head, SessionEnd> {
        let (client, server) = (&mut self.admitted.client, &mut self.admitted.server.wire);
        client.set_next(0);
        tokio::select! {
            biased;
            () = self.shared.stop.cancelled(), if !self.state.is_in_transaction() => {
                Err(SessionEnd::Said(FaultClass::Unavailable, errors::shutdown()))
            }
            head = client.head(FIRST_BYTES) => head?.ok_or(SessionEnd::Gone),
            // Before the server ends a connection, it sends an error without being asked.
            said = server.head(0) => {
                if let Ok(Some(_)) = said {
                    server.forward(client).await?;
                    client.flush().await?;
                }
                Err(SessionEnd::Gone)
            }
        }
    }

    /// Carries out a command, up to the end of its answer.
    async fn command(&mut self, head: Head) -> Result<(), SessionEnd> {
        let content = self.admitted.client.content(head);
        let command = content.first().copied().unwrap_or_default();
        match command {
            command::QUERY => self.query(head).await,
            command::STMT_PREPARE => self.prepare(head).await,
            command::STMT_EXECUTE => self.execute(head).await,
            command::STMT_BULK_EXECUTE => {
                let kind = self.kind_of_statement(head);
                if !rows::before_another(self, head, kind, SEVERAL_ROWS).await? {
                    return Ok(());
                }
                let effect = self.effect_of_statement(head);
                self.prepared
                    .follow_bulk(self.admitted.client.content(head));
                self.relay_statement(head, effect).await.map(drop)
            }
            command::CHANGE_USER => another_user::log_in(self).await,
            command::PING => self.relay_ping(head).await,
            command::BINLOG_DUMP..=command::REGISTER_SLAVE
            | command::BINLOG_DUMP_GTID
            | command::CLONE
            | command::SUBSCRIBE
            | command::MULTI => self.refuse().await,
            command::INIT_DB => {
                self.state.note(SessionEffect::Settings);
                self.state.last_write = None;
                self.relay(head).await.map(drop)
            }
            command::RESET_CONNECTION => {
                let answer = self.relay(head).await?;
                let status = answer.and_then(|answer| answer.status());
                self.begin_again(status.unwrap_or_default());
                Ok(())
            }
            _ => {
                self.prepared.follow(self.admitted.client.content(head));
                let answer = self.relay(head).await?;
                if command == command::STMT_RESET
                    && answer.is_some_and(|answer| !answer.is_error())
                    && let Some(write) = &mut self.state.last_write
                {
                    // ROW_COUNT() is that of the reset from now on.
                    write.affected = Some(0);
                    write.is_behind_question = false;
                }
                Ok(())
            }
        }
    }

    /// Carries out a statement that comes as a text.
    async fn query(&mut self, head: Head) -> Result<(), SessionEnd> {
        if head.len > MAX_STATEMENT_BYTES {
            if !rows::before_another(self, head, self.kind(head), LONG).await? {
                return Ok(());
            }
            let effect = self.effect_of_long_text(head);
            return self.relay_statement(head, effect).await.map(drop);
        }
        self.admitted.client.head(head.len).await?;
        let mut reason = NO_ROW;
        if self.text(head).is_some_and(may_be_write) {
            match self.join_text(head).await? {
                Ok(()) => return Ok(()),
                Err(not) => {
                    self.count(&not);
                    reason = not.reason();
                }
            }
        } else if self.has_other_bytes(head) {
            // The effect of the text depends on the character set.
            drop(self.lane().await?);
        }
        if self.answer_of_last_write(head).await? {
            return Ok(());
        }
        if let Some(error) = self.own_among_several(head) {
            let class = FaultClass::Invalid;
            return self.answer_error(head, class, &error).await;
        }
        let assigned = self.text(head).map(|text| self.own_assignments(text));
        let assigned = assigned.unwrap_or_default();
        let values = Arguments::default();
        let forbidden = rows::forbidden(self);
        let own = match self.own.after(&assigned, &values, &forbidden) {
            Ok(own) => own,
            Err(error) => return self.answer_error(head, FaultClass::Invalid, &error).await,
        };
        if assigned.is_empty() && !rows::before_another(self, head, self.kind(head), reason).await?
        {
            return Ok(());
        }
        let effect = self.effect(head);
        let answer = self.relay_statement(head, effect).await?;
        self.set_own(own, answer.as_ref());
        Ok(())
    }

    /// Has a statement prepared, and notes the facts about it.
    async fn prepare(&mut self, head: Head) -> Result<(), SessionEnd> {
        let is_short = head.len <= MAX_STATEMENT_BYTES;
        let (mut text, mut effect) = (None, SessionEffect::Unknown("a long prepared statement"));
        if is_short {
            self.admitted.client.head(head.len).await?;
            let content = self.admitted.client.content(head);
            let said = content.get(1..).and_then(|text| str::from_utf8(text).ok());
            effect = said.map_or(NO_TEXT, |text| self.effect_of_text(text));
            text = said.map(str::to_owned);
        }
        let asks = text.as_deref().is_none_or(may_ask_for_last_write);
        let prepared = self.relay_prepare(head, asks).await?;
        if let Some(write) = &mut self.state.last_write {
            write.is_behind_question = true;
        }
        // MySQL does not know that number.
        let last = prepared.filter(|_| self.shared.is_mariadb());
        self.prepared.set_last(last.map(|last| last.id));
        if let Some(prepared) = prepared {
            let changes = self.state.settings_changes();
            let text = text.as_deref();
            let own = text.map_or_else(Vec::new, |text| self.own_assignments(text));
            self.prepared.add(prepared, changes, text, effect, own);
        }
        Ok(())
    }

    /// Carries out a prepared statement.
    async fn execute(&mut self, head: Head) -> Result<(), SessionEnd> {
        let is_short = head.len <= MAX_STATEMENT_BYTES;
        if is_short {
            self.admitted.client.head(head.len).await?;
        }
        let mut reason = if is_short { NO_ROW } else { LONG };
        if is_short {
            match self.join_execution(head).await? {
                Ok(()) => return Ok(()),
                Err(not) => {
                    self.count(&not);
                    reason = not.reason();
                }
            }
        }
        let own = match self.own_after_execution(head) {
            _ if !is_short => None,
            Ok(own) => own,
            Err(error) => return self.answer_error(head, FaultClass::Invalid, &error).await,
        };
        let kind = self.kind_of_statement(head);
        if own.is_none() && !rows::before_another(self, head, kind, reason).await? {
            return Ok(());
        }
        let effect = self.effect_of_statement(head);
        let answer = self.relay_execution(head, effect).await?;
        self.set_own(own, answer.as_ref());
        Ok(())
    }

    /// Returns the assignments of a text to Windrow's own variables.
    fn own_assignments(&self, text: &str) -> Vec<(Box<str>, AssignedValue)> {
        own_settings(text, self.modes())
    }

    /// Returns the error for a text of several statements that would set one of them without
    /// effect.
    fn own_among_several(&self, head: Head) -> Option<ErrorPacket> {
        let name = own_name_among_several(self.text(head)?, self.modes())?;
        OwnSettings::among_several(&name)
    }

    fn modes(&self) -> Modes {
        Modes {
            ansi_quotes: false,
            no_backslash_escapes: !self.state.has_escapes(),
            is_mariadb: self.shared.is_mariadb(),
        }
    }

    /// Returns Windrow's own settings as they are after an execution of a prepared statement.
    fn own_after_execution(&mut self, head: Head) -> Result<Option<OwnSettings>, ErrorPacket> {
        let content = self.admitted.client.content(head);
        let assigned = match self.prepared.get_mut(content) {
            Some(prepared) if !prepared.own.is_empty() => prepared.own.clone(),
            _ => return Ok(None),
        };
        let values = self.arguments(head).unwrap_or_default();
        let forbidden = rows::forbidden(self);
        self.own.after(&assigned, &values, &forbidden)
    }

    /// Takes over settings once the server has answered the statement that sets them.
    fn set_own(&mut self, own: Option<OwnSettings>, answer: Option<&Answer>) {
        if let Some(own) = own
            && answer.is_some_and(|answer| !answer.is_error())
        {
            self.own = own;
        }
    }

    /// Answers a statement with an error of Windrow's.
    async fn answer_error(
        &mut self,
        head: Head,
        class: FaultClass,
        error: &ErrorPacket,
    ) -> Result<(), SessionEnd> {
        self.shared.metrics.refusal(class);
        let client = &mut self.admitted.client;
        client.skip(head);
        client.set_next(head.number.wrapping_add(1));
        client.put(&error.encode());
        self.state.last_write = Some(LastWrite::refused(error));
        Ok(self.admitted.client.flush().await?)
    }

    /// Counts a write that was not joined.
    fn count(&self, not: &NotJoined) {
        if let NotJoined::For(reason) = not {
            self.shared.metrics.count_bypass(reason);
        }
    }

    /// Returns the text of a `COM_QUERY` that is here as a whole. `None` if it has attributes, or
    /// is not valid UTF-8.
    fn text(&self, head: Head) -> Option<&str> {
        let content = self.admitted.client.content(head);
        str::from_utf8(content.get(self.text_start(content)?..)?).ok()
    }

    /// Returns the place of the text in the content of a `COM_QUERY`. `None` if it has attributes.
    fn text_start(&self, content: &[u8]) -> Option<usize> {
        match (self.has_attributes(), content.get(1..3)) {
            (false, _) => Some(1),
            // One set of attributes, which is empty.
            (true, Some([0, 1])) => Some(3),
            (true, _) => None,
        }
    }

    /// Returns true if texts come with attributes.
    fn has_attributes(&self) -> bool {
        let capabilities = self.admitted.request.capabilities;
        capabilities.contains(CapabilityFlags::CLIENT_QUERY_ATTRIBUTES)
    }

    /// Returns the kind of a text whose beginning has arrived.
    fn kind(&self, head: Head) -> StatementKind {
        let content = self.admitted.client.content(head);
        let text = self
            .text_start(content)
            .and_then(|start| content.get(start..));
        text.map_or(StatementKind::UNKNOWN, |text| {
            StatementKind::of(&String::from_utf8_lossy(text))
        })
    }

    /// Returns the kind of a prepared statement that is executed.
    fn kind_of_statement(&mut self, head: Head) -> StatementKind {
        let content = self.admitted.client.content(head);
        let prepared = self.prepared.get_mut(content);
        prepared.map_or(StatementKind::UNKNOWN, |prepared| prepared.kind)
    }

    fn effect(&self, head: Head) -> SessionEffect {
        match self.text(head) {
            _ if !self.state.is_followed() => SessionEffect::Nothing,
            Some(text) => self.effect_of_text(text),
            None => self.effect_of_other_bytes(head),
        }
    }

    /// Returns true for a text that is not UTF-8.
    fn has_other_bytes(&self, head: Head) -> bool {
        let content = self.admitted.client.content(head);
        self.text_start(content).is_some() && self.text(head).is_none()
    }

    /// Returns the effect of a text that is not UTF-8. The parser does not know bytes from 0x80.
    /// They do no harm unless each is the first byte of a character whose second one is an ASCII
    /// byte.
    fn effect_of_other_bytes(&self, head: Head) -> SessionEffect {
        let content = self.admitted.client.content(head);
        let lane = self.state.source.as_ref().map(|source| &source.lane);
        let start = self.text_start(content);
        match (lane.filter(|lane| lane.is_ascii_based()), start) {
            (Some(_), Some(start)) => {
                let bytes = content.get(start..).unwrap_or_default();
                self.effect_of_text(&String::from_utf8_lossy(bytes))
            }
            _ => NO_TEXT,
        }
    }

    fn effect_of_text(&self, text: &str) -> SessionEffect {
        let source = self.state.source.as_ref();
        match source.and_then(|source| source.lane.modes()) {
            Some(modes) => effect(text, modes),
            None => effect_in_any_mode(text, self.shared.is_mariadb()),
        }
    }

    /// Returns the effect of a text that is too long to be read.
    fn effect_of_long_text(&self, head: Head) -> SessionEffect {
        let capabilities = self.admitted.request.capabilities;
        let is_one = !capabilities.contains(CapabilityFlags::CLIENT_MULTI_STATEMENTS);
        let content = self.admitted.client.content(head);
        let start = self.text_start(content).unwrap_or(1);
        let first = content.get(start..).unwrap_or_default().trim_ascii_start();
        let words: [&[u8]; 4] = [b"INSERT", b"REPLACE", b"UPDATE", b"SELECT"];
        let is_plain = words.iter().any(|word| {
            let begin = first.get(..word.len());
            begin.is_some_and(|begin| begin.eq_ignore_ascii_case(word))
        });
        match is_one && is_plain {
            true => SessionEffect::Nothing,
            false => SessionEffect::Unknown("a long text"),
        }
    }

    /// Returns the effect of a prepared statement that is executed.
    fn effect_of_statement(&mut self, head: Head) -> SessionEffect {
        let content = self.admitted.client.content(head);
        if self.prepared.is_of_none(content) {
            return SessionEffect::Nothing;
        }
        match self.prepared.get_mut(content) {
            Some(statement) => statement.effect,
            None => SessionEffect::Unknown("many prepared statements"),
        }
    }

    /// Refuses a command whose answer cannot be followed.
    async fn refuse(&mut self) -> Result<(), SessionEnd> {
        let client = &mut self.admitted.client;
        client.packet(MAX_LOGIN_BYTES).await?;
        self.shared.metrics.refusal(FaultClass::Unsupported);
        client.put(&errors::unknown_command().encode());
        Ok(client.flush().await?)
    }

    /// Forgets everything that the session has set and prepared.
    fn begin_again(&mut self, status: StatusFlags) {
        self.prepared.clear();
        self.own = OwnSettings::default();
        self.state = SessionState::new(status);
    }
}

/// The reasons why a statement is not written as a row.
const LONG: &str = "it is longer than 256 KiB";
const SEVERAL_ROWS: &str = "it has several rows";

/// The effect of a text that cannot be read.
const NO_TEXT: SessionEffect = SessionEffect::Unknown("a text with attributes, or not in UTF-8");

/// Returns true for a text that may ask for counts, warnings or the number of the write before.
fn may_ask_for_last_write(text: &str) -> bool {
    mentions_row_count(text) || mentions_insert_id(text) || question(text).is_some()
}
