//! Plays a client's part.

use std::collections::HashMap;
use std::io;

use windrow_mysqlwire::Target;
use windrow_mysqlwire::command;

use super::program::{Command, Play, Step};
use super::schema::{LOW, prefix};
use super::statements::{Sql, prepared, text};
use super::transcript::Transcript;
use super::values::{Driver, Type, Value};
use crate::raw::{LAST, RawClient, query};

/// Connects, does all steps, leaves.
pub async fn client(target: &Target, owner: u8, is_shared: bool, play: &Play) -> Transcript {
    let mut transcript = Transcript::default();
    match RawClient::connect(target, &play.form).await {
        Err(error) => transcript.broke(format!("no login: {error}")),
        Ok((client, mut ok)) => {
            without_chance(&mut ok);
            transcript.add("login".to_owned(), vec![(0, ok)]);
            let mut player = Player {
                client,
                owner,
                is_shared,
                database: target.database.clone(),
                driver: play.driver,
                prepared: HashMap::new(),
                transcript,
            };
            let done = player.all(&play.steps).await;
            transcript = player.transcript;
            if let Err(error) = done {
                transcript.broke(error.to_string());
            }
        }
    }
    transcript
}

/// Clears the number of warnings in the success of a login: MariaDB counts one by chance.
fn without_chance(ok: &mut [u8]) {
    if let [0, _, _, _, _, warnings, _, ..] = ok {
        *warnings = 0;
    }
}

/// Leaves the session's variables out of the success of a change of the user: Windrow logs in
/// again, and MariaDB 11 names all variables at a login only.
fn without_variables(ok: &mut Vec<u8>) {
    const VARIABLE: u8 = 0;
    // Two counts, the status, the warnings, no text; then the changes behind their length.
    let has_changes = ok.first() == Some(&0) && ok.get(4).is_some_and(|status| status & 0x40 != 0);
    if !has_changes {
        return;
    }
    let mut changes = ok.split_off(8);
    let mut rest = &changes.split_off(1)[..];
    while let [kind, len, behind @ ..] = rest {
        let (change, behind) = behind.split_at(usize::from(*len));
        if *kind != VARIABLE {
            ok.extend([*kind, *len]);
            ok.extend(change);
        }
        rest = behind;
    }
}

/// A statement that was prepared, and the types that were bound last.
struct Prepared {
    sql: Sql,
    types: Option<Vec<Type>>,
    /// True once an execution has asked for a cursor.
    had_cursor: bool,
}

struct Player {
    client: RawClient,
    owner: u8,
    is_shared: bool,
    database: String,
    driver: Driver,
    prepared: HashMap<u8, Prepared>,
    transcript: Transcript,
}

impl Player {
    async fn all(&mut self, steps: &[Step]) -> io::Result<()> {
        // FOUND_ROWS() and warnings are left by chance before a session's first statement.
        self.forget().await?;
        for step in steps {
            self.step(step).await?;
        }
        // Nothing of a session is left behind that the other clients' tables depend on.
        let prefix = prefix((!self.is_shared).then_some(self.owner));
        let xid = format!("{}{prefix}", self.database);
        let (ended, undone) = (format!("xa end '{xid}'"), format!("xa rollback '{xid}'"));
        for end in ["rollback", &ended, &undone, "unlock tables"] {
            self.command(&query(end.as_bytes())).await?;
        }
        Ok(())
    }

    /// Has the session forget errors, warnings and counts of the statement before.
    async fn forget(&mut self) -> io::Result<()> {
        let prefix = prefix((!self.is_shared).then_some(self.owner));
        let text = format!("select count(*) from {prefix}pairs where owner < 0");
        self.command(&query(text.as_bytes())).await
    }

    async fn step(&mut self, step: &Step) -> io::Result<()> {
        match step {
            Step::Text(sql) => {
                // MySQL reads the values of prepared statements in the character set of their
                // preparation, until it prepares them again because of another client's DDL.
                if sql.is_of_charset() && self.client.is_mysql() {
                    self.prepared.clear();
                }
                self.command(&self.text(sql)).await
            }
            Step::Together(all) => {
                let commands = all.iter().map(|sql| self.text(sql)).collect();
                self.together(commands).await
            }
            // MySQL keeps the count while a statement is prepared. Windrow cannot give its own
            // connection a count above one.
            Step::Prepare { sql, .. } if sql.asks_for_count() && self.client.is_mysql() => {
                self.forget().await
            }
            Step::Prepare {
                slot,
                sql,
                runs,
                is_last,
                cursor,
            } => {
                let known = Prepared {
                    sql: sql.clone(),
                    types: None,
                    had_cursor: false,
                };
                self.prepared.insert(*slot, known);
                let (text, _) = self.parts(sql);
                let prepare = [&[command::STMT_PREPARE], &text[..]].concat();
                match (runs, is_last) {
                    (true, true) => {
                        let execute = self.execution(*slot, sql, LAST, 0);
                        self.prepare_and(*slot, prepare, execute).await
                    }
                    (true, false) => {
                        self.prepare(*slot, &prepare).await?;
                        self.execute(
                            *slot,
                            std::slice::from_ref(sql),
                            u8::from(*cursor && sql.may_have_cursor()),
                        )
                        .await
                    }
                    (false, _) => {
                        self.prepare(*slot, &prepare).await?;
                        self.forget().await
                    }
                }
            }
            Step::Again { slot, picks } => self.again(*slot, &[*picks]).await,
            Step::Pipelined { slot, picks } => self.again(*slot, picks).await,
            Step::Long { slot, picks } => self.long(*slot, *picks).await,
            Step::Close { slot, resets } => self.close(*slot, *resets).await,
            Step::ChangeUser(is_low) => {
                let user = if *is_low { LOW } else { "root" };
                let mut answer = self.client.change_user(user, &self.database).await?;
                without_chance(&mut answer[0].1);
                without_variables(&mut answer[0].1);
                self.prepared.clear();
                self.transcript
                    .add(format!("change user to {user}"), answer);
                Ok(())
            }
            Step::Command(command) => {
                self.command(&self.other(*command)).await?;
                self.forget().await
            }
        }
    }

    fn text(&self, sql: &Sql) -> Vec<u8> {
        query(&text(&sql.parts(
            self.owner,
            self.is_shared,
            &self.database,
        )))
    }

    fn parts(&self, sql: &Sql) -> (Vec<u8>, Vec<(Value, u8)>) {
        prepared(&sql.parts(self.owner, self.is_shared, &self.database))
    }

    fn other(&self, command: Command) -> Vec<u8> {
        match command {
            Command::Ping => vec![0x0e],
            Command::ResetConnection => vec![command::RESET_CONNECTION],
            Command::InitDb(true) => [&[0x02], self.database.as_bytes()].concat(),
            Command::InitDb(false) => b"\x02nodb".to_vec(),
            Command::SetOption(off) => vec![0x1b, u8::from(off), 0],
            Command::Unknown => vec![0x7f],
        }
    }

    /// Sends a command, and notes its answer.
    async fn command(&mut self, content: &[u8]) -> io::Result<()> {
        let answer = self.client.ask(content).await;
        let mut answer = answer.map_err(|error| broke(content, &error))?;
        // Answers to COM_INIT_DB and COM_SET_OPTION have the warnings of the statement before, on
        // MySQL.
        match (
            content[0],
            answer.first_mut().map(|(_, packet)| &mut packet[..]),
        ) {
            (0x02, Some([0, _, _, _, _, warnings, ..]))
            | (0x1b, Some([0xfe, 0, 0, _, _, warnings, ..] | [0xfe, warnings, ..])) => {
                *warnings = 0;
            }
            _ => {}
        }
        self.transcript.add(shown(content), answer);
        if content[0] == command::RESET_CONNECTION {
            self.prepared.clear();
            self.client.forget_all();
        }
        Ok(())
    }

    async fn together(&mut self, commands: Vec<Vec<u8>>) -> io::Result<()> {
        for content in &commands {
            self.client.put(content);
        }
        self.client.flush().await?;
        for content in commands {
            let answer = self.client.answer(content[0]).await;
            let answer = answer.map_err(|error| broke(&content, &error))?;
            self.transcript.add(shown(&content), answer);
        }
        Ok(())
    }

    async fn prepare(&mut self, slot: u8, content: &[u8]) -> io::Result<()> {
        let mut answer = self
            .client
            .ask(content)
            .await
            .map_err(|error| broke(content, &error))?;
        self.client.note_prepared(slot, &mut answer);
        self.transcript.add(shown(content), answer);
        Ok(())
    }

    /// Sends a preparation and an execution of what it prepares.
    async fn prepare_and(
        &mut self,
        slot: u8,
        prepare: Vec<u8>,
        execute: Vec<u8>,
    ) -> io::Result<()> {
        self.client.put(&prepare);
        self.client.put(&execute);
        self.client.flush().await?;
        let mut answer = self.client.answer(prepare[0]).await?;
        self.client.note_prepared(slot, &mut answer);
        self.transcript.add(shown(&prepare), answer);
        let answer = self.client.answer(execute[0]).await;
        let answer = answer.map_err(|error| broke(&execute, &error))?;
        self.transcript.add(shown(&execute), answer);
        if self.client.id(slot).is_none()
            && let Some(known) = self.prepared.get_mut(&slot)
        {
            known.types = None;
        }
        Ok(())
    }

    async fn again(&mut self, slot: u8, picks: &[[u8; 6]]) -> io::Result<()> {
        let Some(known) = self.prepared.get(&slot) else {
            return Ok(());
        };
        let all: Vec<_> = picks.iter().map(|picks| known.sql.again(*picks)).collect();
        self.execute(slot, &all, 0).await
    }

    async fn execute(&mut self, slot: u8, all: &[Sql], cursor: u8) -> io::Result<()> {
        let Some(id) = self.client.id(slot).filter(|_| self.has_end(slot, cursor)) else {
            return self.forget().await;
        };
        let commands = all.iter().map(|sql| self.execution(slot, sql, id, cursor));
        let commands: Vec<_> = commands.collect();
        for content in &commands {
            self.client.put(content);
        }
        self.client.flush().await?;
        for content in commands {
            let answer = self.client.answer(content[0]).await;
            let answer = answer.map_err(|error| broke(&content, &error))?;
            // The id differs from session to session.
            self.transcript
                .add(format!("slot {slot}: {}", shown(&content[5..])), answer);
        }
        // The error of a statement without rows has the statement's id in its message.
        if cursor != 0 && all.iter().all(Sql::is_read) {
            let fetch = [&[command::STMT_FETCH], &id[..], &[10, 0, 0, 0]].concat();
            let answer = self.client.ask(&fetch).await?;
            self.transcript.add("fetch".to_owned(), answer);
        }
        Ok(())
    }

    /// Notes that an execution asks for a cursor. Returns false if the answer would have no end:
    /// MySQL 9.7 answers an execution without a cursor, of a statement that was executed with one,
    /// with the columns and a success packet (`00`), and sends neither rows nor their end (`fe`).
    fn has_end(&mut self, slot: u8, cursor: u8) -> bool {
        let Some(known) = self.prepared.get_mut(&slot) else {
            return true;
        };
        known.had_cursor |= cursor != 0;
        cursor != 0 || !known.had_cursor || !self.client.is_mysql()
    }

    /// Returns a `COM_STMT_EXECUTE`. Types are left out if they are those of the execution before.
    fn execution(&mut self, slot: u8, sql: &Sql, id: [u8; 4], cursor: u8) -> Vec<u8> {
        let (_, values) = self.parts(sql);
        let driver = self.driver;
        let bound: Vec<_> = values
            .iter()
            .map(|(v, style)| v.bound(driver, *style))
            .collect();
        let types: Vec<Type> = bound.iter().map(|(of, _)| *of).collect();
        let mut content = [&[command::STMT_EXECUTE], &id[..], &[cursor, 1, 0, 0, 0]].concat();
        if !bound.is_empty() {
            let mut nulls = vec![0; bound.len().div_ceil(8)];
            for (at, (_, bytes)) in bound.iter().enumerate() {
                nulls[at / 8] |= u8::from(bytes.is_none()) << (at % 8);
            }
            content.extend(nulls);
            let known = self.prepared.get_mut(&slot).unwrap();
            let is_new = known.types.as_ref() != Some(&types);
            content.push(u8::from(is_new));
            if is_new {
                content.extend(types.iter().flatten());
                known.types = Some(types);
            }
            content.extend(bound.into_iter().filter_map(|(_, bytes)| bytes).flatten());
        }
        content
    }

    /// Sends the first value in pieces, and executes the statement. Values that come so are
    /// strings.
    async fn long(&mut self, slot: u8, picks: [u8; 6]) -> io::Result<()> {
        let (Some(id), Some(known)) = (self.client.id(slot), self.prepared.get_mut(&slot)) else {
            return Ok(());
        };
        known.types = None;
        let sql = known.sql.again(picks);
        let (_, values) = self.parts(&sql);
        let Some((first, _)) = values.first().filter(|_| sql.may_have_long_value()) else {
            return Ok(());
        };
        let whole = first.as_text();
        let (start, end) = whole.split_at(whole.len() / 2);
        for piece in [start, end] {
            let long = [&[command::STMT_SEND_LONG_DATA], &id[..], &[0, 0], piece].concat();
            self.client.put(&long);
        }
        let driver = std::mem::replace(&mut self.driver, Driver::Strings);
        let mut content = self.execution(slot, &sql, id, 0);
        self.driver = driver;
        // The value is not in the command: it is found by its null bit and by its length.
        let count = values.len();
        let nulls = 10..10 + count.div_ceil(8);
        let first = nulls.end + 1 + 2 * count;
        if content[nulls.start] & 1 == 0 {
            let end = first + 1 + usize::from(content[first]);
            content.drain(first..end);
        }
        content[nulls.start] &= !1;
        self.prepared.get_mut(&slot).unwrap().types = None;
        self.client.put(&content);
        self.client.flush().await?;
        let answer = self.client.answer(content[0]).await?;
        self.transcript.add(
            format!("slot {slot}, long: {}", shown(&content[5..])),
            answer,
        );
        Ok(())
    }

    async fn close(&mut self, slot: u8, resets: bool) -> io::Result<()> {
        let id = if resets {
            self.client.id(slot)
        } else {
            self.client.forget(slot)
        };
        let Some(id) = id else { return Ok(()) };
        let command = if resets { 0x1a } else { command::STMT_CLOSE };
        let content = [&[command], &id[..]].concat();
        let answer = self.client.ask(&content).await?;
        self.transcript
            .add(format!("close or reset {slot}"), answer);
        if !resets {
            self.prepared.remove(&slot);
        }
        Ok(())
    }
}

fn shown(content: &[u8]) -> String {
    content.escape_ascii().to_string()
}

fn broke(content: &[u8], error: &io::Error) -> io::Error {
    io::Error::other(format!("{}: {error}", shown(content)))
}
