//! Relays commands to the session's server connection, and their answers, packet by packet.

use windrow_core::FaultClass;
use windrow_mysqlwire::answer::{LOOK_BYTES, Step};
use windrow_mysqlwire::command;
use windrow_mysqlwire::query::{put_query, read_reply};
use windrow_mysqlwire::{Answer, ForwardError, Head, PreparedStatement};
use windrow_sql::mysql::{SessionEffect, mentions_row_count, question};

use super::client_session::{Session, SessionEnd};
use super::own_answer::{NO_DIAGNOSTICS, count_of, diagnostics_of, rows};
use crate::errors;
use crate::kill::{self, MAX_KILL_BYTES};
use crate::lanes::may_change_tables;
use crate::prepared::{Execution, with_types};

/// The longest packet of an answer whose rows are replaced, in bytes.
const MAX_ANSWER_BYTES: usize = 1 << 20;

/// A `KILL` of a session of this frontend.
pub(super) struct Kill {
    /// The command with the server's number of the session.
    content: Vec<u8>,
    /// The number of the session that its client knows. `None` if the `KILL` is only prepared.
    id: Option<u64>,
}

impl Session {
    /// Relays a statement, and notes its effect on the session.
    pub(super) async fn relay_statement(
        &mut self,
        head: Head,
        effect: SessionEffect,
    ) -> Result<Option<Answer>, SessionEnd> {
        self.shared.metrics.relayed.inc();
        let changes_tables = self.text(head).is_some_and(may_change_tables);
        let facts = self.put_facts(head);
        let answered = self.exchange(head, facts).await;
        if changes_tables {
            self.shared.lanes.tables_changed();
        }
        self.state.note(effect);
        answered
    }

    /// Relays the execution of a prepared statement. If only a joined execution had the parameters'
    /// types, they are added for the server.
    pub(super) async fn relay_execution(
        &mut self,
        head: Head,
        effect: SessionEffect,
    ) -> Result<Option<Answer>, SessionEnd> {
        let client = &mut self.admitted.client;
        let parameters = self
            .prepared
            .get_mut(client.content(head))
            .map(|s| s.parameters);
        let count = usize::from(parameters.unwrap_or_default());
        // The packet up to the types.
        client
            .head(head.len.min(11 + count.div_ceil(8) + 2 * count))
            .await?;
        let content = client.content(head);
        let (mut added, mut charset) = (None, None);
        if let Some(statement) = self.prepared.get_mut(content)
            && let Some(execution) = Execution::read(content, statement.parameters)
        {
            match (execution.types, &statement.types) {
                (Some(types), _) => {
                    statement.types = Some(types.into());
                    statement.server_has_types = true;
                }
                (None, Some(types)) if !statement.server_has_types && count > 0 => {
                    let may_differ = statement.settings_changes != self.state.settings_changes();
                    charset = statement.charset.clone().filter(|_| may_differ);
                    added = Some(types.clone());
                    statement.server_has_types = true;
                }
                (None, _) => {}
            }
        }
        let Some(types) = added else {
            return self.relay_statement(head, effect).await;
        };
        if let Some(charset) = charset
            && !self.is_charset(&charset).await?
        {
            // The server would read the strings in the new character set.
            let client = &mut self.admitted.client;
            if let Some(statement) = self.prepared.get_mut(client.content(head)) {
                statement.server_has_types = false;
            }
            client.discard().await?;
            self.shared.metrics.refusal(FaultClass::Unsupported);
            client.put(&errors::other_charset(&charset).encode());
            client.flush().await?;
            return Ok(None);
        }
        self.shared.metrics.relayed.inc();
        let facts = self.put_facts(head);
        let (client, server) = (&mut self.admitted.client, &mut self.admitted.server);
        let content = client.content(head);
        let beginning = with_types(content, parameters.unwrap_or_default(), &types);
        let (left_out, beginning) = beginning.ok_or(SessionEnd::Gone)?;
        let answer = Answer::to(content, server.forms);
        server.wire.set_next(0);
        let forwarded = client.forward_with(&mut server.wire, left_out, &beginning);
        let sent = match forwarded.await {
            Ok(()) => server.wire.flush().await.map_err(ForwardError::To),
            Err(broken) => Err(broken),
        };
        self.unless_server_ended(sent).await?;
        let answered = self.answers(facts, answer).await;
        self.state.note(effect);
        answered
    }

    /// Returns true if the client's character set is this one.
    async fn is_charset(&mut self, charset: &str) -> Result<bool, SessionEnd> {
        let login = self.login().await?;
        let now = login
            .as_ref()
            .and_then(|l| l.variable("character_set_client"));
        Ok(now == Some(charset))
    }

    /// Answers a text that asks about a joined write before it. Returns false for any other text.
    pub(super) async fn answer_of_last_write(&mut self, head: Head) -> Result<bool, SessionEnd> {
        let Some(write) = &self.state.last_write else {
            return Ok(false);
        };
        let Some(asked) = self.text(head).and_then(question) else {
            return Ok(false);
        };
        let Some(rows) = rows(asked.asked, write) else {
            return Ok(false);
        };
        let keeps = self.shared.is_mariadb() || asked.asked.is_show();
        self.shared.metrics.relayed.inc();
        let number = head.number.wrapping_add(1);
        self.admitted
            .client
            .forward(&mut self.admitted.server.wire)
            .await?;
        self.admitted.server.wire.flush().await?;
        self.admitted.client.set_next(number);
        self.put_answer_with(&rows).await?;
        if let Some(write) = &mut self.state.last_write {
            write.is_behind_question = true;
            if !keeps {
                write.warnings.clear();
                write.error = None;
            }
        }
        self.admitted.client.flush().await?;
        Ok(true)
    }

    /// Passes on the server's answer with other rows.
    async fn put_answer_with(&mut self, rows: &[Vec<u8>]) -> Result<(), SessionEnd> {
        let (client, server) = (&mut self.admitted.client, &mut self.admitted.server);
        let Some(mut answer) = Answer::to(&[command::QUERY], server.forms) else {
            return Ok(());
        };
        loop {
            let content = server.wire.packet(MAX_ANSWER_BYTES).await?;
            let content = content.ok_or(SessionEnd::Gone)?;
            let is_in_rows = answer.is_in_rows();
            let step = answer.take(&content, content.len());
            match (step, is_in_rows) {
                (Step::More, true) => continue,
                (Step::Done, true) => rows.iter().for_each(|row| client.put(row)),
                _ => {}
            }
            client.put(&content);
            if step == Step::Done {
                return Ok(());
            }
        }
    }

    /// Relays a `COM_STMT_PREPARE`. The statement's questions are asked when it is executed.
    /// Preparing it must not change their answers.
    ///
    /// `asks` is true if the statement may ask about the write before.
    pub(super) async fn relay_prepare(
        &mut self,
        head: Head,
        asks: bool,
    ) -> Result<Option<PreparedStatement>, SessionEnd> {
        let facts = if asks { self.put_facts(head) } else { 0 };
        let answer = self.exchange(head, facts).await?;
        Ok(answer.and_then(|answer| answer.prepared_statement()))
    }

    /// Sends the server a ping. The server would take the session's connection for idle while the
    /// session's writes go to the lane (`wait_timeout`). [`Self::end_ping`] reads the answer.
    pub(super) async fn send_ping(&mut self) -> Result<(), SessionEnd> {
        let server = &mut self.admitted.server.wire;
        if !server.is_quiet().await {
            return Err(SessionEnd::Gone);
        }
        server.set_next(0);
        server.put(&[command::PING]);
        Ok(server.flush().await?)
    }

    /// Reads the answer to [`Self::send_ping`].
    pub(super) async fn end_ping(&mut self) -> Result<(), SessionEnd> {
        let server = &mut self.admitted.server.wire;
        let answer = server.packet(MAX_ANSWER_BYTES).await?;
        answer.ok_or(SessionEnd::Gone)?;
        self.state.heard();
        Ok(())
    }

    /// Relays a client's `COM_PING`. MySQL's answer has the number of warnings of the previous
    /// statement.
    pub(super) async fn relay_ping(&mut self, head: Head) -> Result<(), SessionEnd> {
        let write = self.state.last_write.as_ref();
        let Some(write) = write.filter(|_| !self.shared.is_mariadb()) else {
            return self.relay(head).await.map(drop);
        };
        // After a question there are none, though SHOW WARNINGS still has them.
        let count = match write.is_behind_question {
            true => 0,
            false => u16::try_from(write.warnings.len()).unwrap_or(u16::MAX),
        };
        let (client, server) = (&mut self.admitted.client, &mut self.admitted.server.wire);
        client.forward(server).await?;
        server.flush().await?;
        let answer = server.packet(MAX_ANSWER_BYTES).await?;
        let mut answer = answer.ok_or(SessionEnd::Gone)?.to_vec();
        // The number follows the affected rows, the generated number and the status.
        if let [0, 0, 0, _, _, low, high, ..] = &mut *answer {
            [*low, *high] = count.to_le_bytes();
        }
        client.set_next(head.number.wrapping_add(1));
        client.put(&answer);
        self.state.heard();
        Ok(client.flush().await?)
    }

    /// Relays a command.
    pub(super) async fn relay(&mut self, head: Head) -> Result<Option<Answer>, SessionEnd> {
        let content = self.admitted.client.content(head);
        let command = content.first().copied().unwrap_or_default();
        match self.exchange(head, 0).await {
            Ok(None) if command == command::QUIT => Err(SessionEnd::Gone),
            answered => answered,
        }
    }

    /// Sends statements that give the session's server connection the facts about the joined write,
    /// if the next statement may ask for them. Returns the number of answers that come before that
    /// statement's own.
    fn put_facts(&mut self, head: Head) -> usize {
        let id = self.state.insert_id.take();
        let write = self.state.last_write.take();
        let is_asked = write.is_some() && self.asks_for_last_write(head);
        let has_old = write.is_some() && self.state.has_old_diagnostics;
        let (has_escapes, is_mariadb) = (self.state.has_escapes(), self.shared.is_mariadb());
        let diagnostics = write
            .as_ref()
            .and_then(|write| diagnostics_of(write, has_escapes, is_mariadb));
        if write.is_some() {
            self.state.has_old_diagnostics = diagnostics.is_some();
        }
        // MySQL's SELECT and DO leave no warnings behind.
        let keeps = self.shared.is_mariadb() || diagnostics.is_none();
        let counted = write.filter(|_| is_asked && keeps);
        let facts = [
            id.map(|id| format!("SET last_insert_id = {id}")),
            has_old.then(|| NO_DIAGNOSTICS.to_owned()),
            diagnostics,
            counted
                .and_then(|write| count_of(&write))
                .map(str::to_owned),
        ];
        let has_attributes = self.has_attributes();
        let mut count = 0;
        for sql in facts.into_iter().flatten() {
            put_query(&mut self.admitted.server.wire, &sql, has_attributes);
            count += 1;
        }
        count
    }

    /// Returns true if a statement asks for counts or errors of the previous statement.
    fn asks_for_last_write(&mut self, head: Head) -> bool {
        let content = self.admitted.client.content(head);
        match content.first() {
            Some(&command::QUERY) => self.text(head).is_some_and(mentions_row_count),
            // Its execution may ask for them.
            Some(&command::STMT_PREPARE) => true,
            _ => self
                .prepared
                .get_mut(content)
                .is_some_and(|s| s.asks_for_last_write),
        }
    }

    /// Sends a command to the server, with the server's number in a `KILL`, and passes the answer
    /// to the client. `facts` is the number of answers that come before it. `None` if the command
    /// has no answer.
    async fn exchange(&mut self, head: Head, facts: usize) -> Result<Option<Answer>, SessionEnd> {
        let kill = self.kill(head);
        let (client, server) = (&mut self.admitted.client, &mut self.admitted.server);
        let answer = Answer::to(client.content(head), server.forms);
        let sent = match &kill {
            Some(kill) => {
                self.shared.metrics.kills.inc();
                client.skip(head);
                server.wire.set_next(head.number);
                server.wire.put(&kill.content);
                Ok(())
            }
            None => client.forward(&mut server.wire).await,
        };
        let sent = match sent {
            Ok(()) => server.wire.flush().await.map_err(ForwardError::To),
            Err(broken) => Err(broken),
        };
        self.unless_server_ended(sent).await?;
        let answer = self.answers(facts, answer).await?;
        // The server has confirmed that this client may kill the session.
        if let (Some(id), Some(answer)) = (kill.and_then(|kill| kill.id), &answer)
            && !answer.is_error()
        {
            self.shared.register.cancel(id);
        }
        Ok(answer)
    }

    /// Returns a `KILL` of a session of this frontend. `None` for any other command.
    fn kill(&self, head: Head) -> Option<Kill> {
        if head.len > MAX_KILL_BYTES {
            return None;
        }
        let content = self.admitted.client.content(head);
        let server_id = |id| self.shared.register.server_id(id);
        match content.split_first()? {
            (&command::PROCESS_KILL, rest) => {
                let id = u32::from_le_bytes(*rest.first_chunk::<4>()?).into();
                let server_id = server_id(id)?.to_le_bytes();
                let content = [&[command::PROCESS_KILL][..], &server_id].concat();
                let id = Some(id);
                Some(Kill { content, id })
            }
            (&(command::QUERY | command::STMT_PREPARE), _) => {
                let is_query = content.first() == Some(&command::QUERY);
                let place = kill::number(content, self.admitted.request.capabilities)?;
                let (content, id) = kill::renumbered(content, place, server_id)?;
                let id = is_query.then_some(id);
                Some(Kill { content, id })
            }
            _ => None,
        }
    }

    /// Reads the answers that come first, and passes the next one to the client as it arrives.
    async fn answers(
        &mut self,
        facts: usize,
        answer: Option<Answer>,
    ) -> Result<Option<Answer>, SessionEnd> {
        let server = &mut self.admitted.server;
        for _ in 0..facts {
            // An error here is intended: it gives the server the write's error.
            read_reply(&mut server.wire, server.forms).await?;
        }
        let Some(mut answer) = answer else {
            return Ok(None);
        };
        loop {
            let (client, server) = (&mut self.admitted.client, &mut self.admitted.server.wire);
            let head = match server.here(LOOK_BYTES) {
                Some(head) => head,
                None => {
                    client.flush().await?;
                    server.head(LOOK_BYTES).await?.ok_or(SessionEnd::Gone)?
                }
            };
            let step = answer.take(server.content(head), head.len);
            server.forward(client).await?;
            match step {
                Step::More => {}
                Step::File => self.file().await?,
                Step::Done => break,
            }
        }
        self.follow(&answer);
        self.admitted.client.flush().await?;
        Ok(Some(answer))
    }

    /// Notes the facts from the end of an answer.
    fn follow(&mut self, answer: &Answer) {
        self.state.heard();
        if let Some(status) = answer.status() {
            self.state.set_status(status);
        }
        // An answer without warnings may leave those of an earlier statement in place.
        if answer.has_diagnostics() {
            self.state.has_old_diagnostics = true;
            self.state.last_write = None;
        }
    }

    /// Passes a client's file to the server, up to the empty packet at its end.
    async fn file(&mut self) -> Result<(), SessionEnd> {
        self.admitted.client.flush().await?;
        loop {
            let (client, server) = (&mut self.admitted.client, &mut self.admitted.server.wire);
            let head = client.head(0).await?.ok_or(SessionEnd::Gone)?;
            let sent = match client.forward(server).await {
                Ok(()) if head.len == 0 => server.flush().await.map_err(ForwardError::To),
                forwarded => forwarded,
            };
            self.unless_server_ended(sent).await?;
            if head.len == 0 {
                return Ok(());
            }
        }
    }

    /// Ends the session if a connection broke. If it was the server's, the client gets what the
    /// server sent before.
    async fn unless_server_ended(
        &mut self,
        forwarded: Result<(), ForwardError>,
    ) -> Result<(), SessionEnd> {
        if let Err(ForwardError::To(_)) = forwarded {
            self.last_words().await;
        }
        Ok(forwarded?)
    }

    /// Passes on everything that the server sent before its end.
    async fn last_words(&mut self) {
        let (client, server) = (&mut self.admitted.client, &mut self.admitted.server.wire);
        while let Ok(Some(_)) = server.head(0).await {
            if server.forward(client).await.is_err() {
                break;
            }
        }
        drop(client.flush().await);
    }
}
