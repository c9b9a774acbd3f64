//! Plays a client's part.

use std::collections::HashMap;

use anyhow::Result;
use windrow_testkit::pgclient::{Address, Client, Message, frontend};

use super::program::{Act, How, Sent, Step, Whole};
use super::statements::{Sql, Value};
use super::transcript::Transcript;

/// As most drivers bind and execute.
const PLAIN: How = How {
    binary: false,
    binary_rows: false,
    describe: Some(b'P'),
    portal: false,
    rows: 0,
    flush_early: false,
    flush_late: false,
};

/// Connects with these parameters, does all steps, leaves.
pub fn client(
    address: &Address,
    parameters: &[(&str, &str)],
    owner: u8,
    steps: &[Step],
) -> Transcript {
    let mut transcript = Transcript::default();
    let done = Client::connect_with(address, parameters).and_then(|connected| {
        transcript.startup(connected.startup());
        let mut player = Player::new(connected, owner);
        for step in steps {
            let answer = player.step(step)?;
            transcript.add(format!("{step:?}"), answer);
        }
        player.leave()
    });
    if let Err(error) = done {
        transcript.broke(format!("{error:#}"));
    }
    transcript
}

struct Player {
    client: Client,
    owner: u8,
    /// What was last prepared under each name, so that it can be bound with as many values.
    prepared: HashMap<u8, Sql>,
    out: Vec<u8>,
    /// Answers that are due before the next Flush.
    due: usize,
    seen: Vec<Message>,
    /// The unnamed portal was bound by the act before this one.
    fresh: bool,
    /// An error was seen in this segment: nothing more will be answered until its Sync.
    failed: bool,
}

impl Player {
    fn new(client: Client, owner: u8) -> Self {
        Self {
            client,
            owner,
            prepared: HashMap::new(),
            out: Vec::new(),
            due: 0,
            seen: Vec::new(),
            fresh: false,
            failed: false,
        }
    }

    fn step(&mut self, step: &Step) -> Result<Vec<Message>> {
        match step {
            Step::Simple(statements) => {
                let texts: Vec<_> = statements.iter().map(|s| s.literal(self.owner)).collect();
                self.query(&texts.join("; "))?;
            }
            Step::Generated(both) => {
                for sql in both {
                    self.query(&sql.literal(self.owner))?;
                }
            }
            Step::Extended {
                pipelined,
                segments,
            } => self.segments(*pipelined, segments)?,
            Step::Transaction { statements, sent } => self.block(statements, *sent)?,
            Step::Whole { writes, sent } => self.whole(writes, *sent)?,
            Step::CopyIn { rows, fail } => self.copy_in(*rows, *fail)?,
        }
        Ok(std::mem::take(&mut self.seen))
    }

    fn block(&mut self, statements: &[Sql], sent: Sent) -> Result<()> {
        let alone = match sent {
            Sent::Together(alone) => alone.min(statements.len()),
            Sent::Simple | Sent::Extended => statements.len(),
        };
        let (alone, together) = statements.split_at(alone);
        for sql in alone {
            match sent {
                Sent::Extended => {
                    self.parse(sql, None, false);
                    self.run(None, &sql.values(self.owner), PLAIN, false)?;
                    frontend::sync(&mut self.out);
                    self.finish(&mut 1)?;
                }
                Sent::Simple | Sent::Together(_) => self.query(&sql.literal(self.owner))?,
            }
        }
        for sql in together {
            frontend::query(&mut self.out, &sql.literal(self.owner));
        }
        self.finish(&mut together.len())
    }

    fn whole(&mut self, writes: &[Sql], sent: Whole) -> Result<()> {
        let texts: Vec<_> = writes.iter().map(|s| s.literal(self.owner)).collect();
        let text = texts.join(";\n");
        match sent {
            Whole::Query => self.query(&text)?,
            Whole::Block => self.query(&format!("begin;{text}\n; commit"))?,
            Whole::Segment => {
                self.bare("begin");
                for sql in writes {
                    self.parse(sql, None, false);
                    self.run(None, &sql.values(self.owner), PLAIN, false)?;
                }
                self.bare("commit");
                frontend::sync(&mut self.out);
                self.finish(&mut 1)?;
            }
        }
        match self.seen.last().is_some_and(|last| last.body == b"E") {
            true => self.query("rollback"),
            false => Ok(()),
        }
    }

    /// Parse, Bind and Execute of a text without values.
    fn bare(&mut self, sql: &str) {
        frontend::parse(&mut self.out, "", sql, &[]);
        frontend::bind::<&str>(&mut self.out, ("", ""), &[], &[], &[]);
        frontend::execute(&mut self.out, "", 0);
    }

    fn query(&mut self, sql: &str) -> Result<()> {
        let answer = self.client.query(sql)?;
        self.keep(answer)
    }

    fn keep(&mut self, answer: Vec<Message>) -> Result<()> {
        let whole = answer.last().is_some_and(|m| m.tag == b'Z');
        self.seen.extend(answer);
        anyhow::ensure!(whole, "the connection ended: {:?}", self.seen);
        Ok(())
    }

    fn segments(&mut self, pipelined: bool, segments: &[Vec<Act>]) -> Result<()> {
        let mut open = 0;
        for acts in segments {
            (self.due, self.fresh, self.failed) = (0, false, false);
            for act in acts {
                self.act(act, pipelined)?;
            }
            frontend::sync(&mut self.out);
            open += 1;
            if !pipelined {
                self.finish(&mut open)?;
            }
        }
        self.finish(&mut open)
    }

    fn finish(&mut self, open: &mut usize) -> Result<()> {
        self.send()?;
        for _ in 0..std::mem::take(open) {
            let answer = self.client.until_ready()?;
            self.keep(answer)?;
        }
        Ok(())
    }

    fn send(&mut self) -> Result<()> {
        self.client.send(&self.out)?;
        self.out.clear();
        Ok(())
    }

    fn act(&mut self, act: &Act, pipelined: bool) -> Result<()> {
        let fresh = std::mem::take(&mut self.fresh);
        match act {
            Act::Run {
                sql,
                name,
                typed,
                how,
            } => {
                self.parse(sql, *name, *typed);
                self.run(*name, &sql.values(self.owner), *how, pipelined)
            }
            Act::Again { name, picks, how } => {
                let sql = self.prepared.get(name).map(|sql| sql.again(*picks));
                let values = sql.map_or(Vec::new(), |sql| sql.values(self.owner));
                self.run(Some(*name), &values, *how, pipelined)
            }
            Act::Prepare {
                sql,
                name,
                typed,
                flush,
            } => {
                self.parse(sql, *name, *typed);
                frontend::describe(&mut self.out, b'S', &statement(*name));
                // ParameterDescription, and RowDescription or NoData.
                self.due += 2;
                self.flush(*flush && !pipelined)
            }
            // An older portal of the block can bring PostgreSQL 15 down.
            Act::Twice if !fresh => Ok(()),
            Act::Twice => {
                frontend::execute(&mut self.out, "", 0);
                self.due += 1;
                Ok(())
            }
            Act::Close { name } => {
                frontend::close(&mut self.out, b'S', &statement(Some(*name)));
                self.due += 1;
                Ok(())
            }
            Act::Odd(which) => {
                match which {
                    0 => frontend::close(&mut self.out, b'P', "nobody"),
                    1 => frontend::describe(&mut self.out, b'P', "nobody"),
                    _ => return self.flush(!pipelined),
                }
                self.due += 1;
                Ok(())
            }
        }
    }

    fn parse(&mut self, sql: &Sql, name: Option<u8>, typed: bool) {
        if let Some(name) = name
            && self.prepared.insert(name, sql.clone()).is_some()
        {
            frontend::close(&mut self.out, b'S', &statement(Some(name)));
            self.due += 1;
        }
        let values = sql.values(self.owner);
        let types: Vec<u32> = values.iter().filter(|_| typed).map(|v| v.oid).collect();
        let text = sql.numbered(self.owner);
        frontend::parse(&mut self.out, &statement(name), &text, &types);
        self.due += 1;
    }

    fn run(&mut self, name: Option<u8>, values: &[Value], how: How, pipelined: bool) -> Result<()> {
        let portal = if how.portal { "portal" } else { "" };
        self.bind(portal, &statement(name), values, how);
        match how.describe {
            Some(b'S') => {
                frontend::describe(&mut self.out, b'S', &statement(name));
                self.due += 2;
            }
            Some(_) => {
                frontend::describe(&mut self.out, b'P', portal);
                self.due += 1;
            }
            None => {}
        }
        self.flush(how.flush_early && !pipelined)?;
        frontend::execute(&mut self.out, portal, how.rows.into());
        self.due += 1;
        self.fresh = !how.portal;
        self.flush(how.flush_late && !pipelined)?;
        if how.portal {
            frontend::close(&mut self.out, b'P', portal);
            self.due += 1;
        }
        Ok(())
    }

    fn bind(&mut self, portal: &str, statement: &str, values: &[Value], how: How) {
        let binary = |value: &Value| how.binary && value.binary.is_some();
        let formats: Vec<u16> = values.iter().map(|v| u16::from(binary(v))).collect();
        let formats = if how.binary { formats } else { Vec::new() };
        let bytes: Vec<Option<Vec<u8>>> = values
            .iter()
            .map(|value| match &value.binary {
                Some(bytes) if how.binary => Some(bytes.clone()),
                _ => value.text.as_ref().map(|text| text.as_bytes().to_vec()),
            })
            .collect();
        let results: &[u16] = if how.binary_rows { &[1] } else { &[] };
        frontend::bind(
            &mut self.out,
            (portal, statement),
            &formats,
            &bytes,
            results,
        );
        self.due += 1;
    }

    /// Sends what there is with a Flush, and waits for all that is answered before it.
    fn flush(&mut self, wanted: bool) -> Result<()> {
        if !wanted {
            return Ok(());
        }
        frontend::flush(&mut self.out);
        self.send()?;
        while self.due > 0 && !self.failed {
            let message = self.client.receive()?;
            let message = message.ok_or_else(|| anyhow::anyhow!("the connection ended"))?;
            match message.tag {
                b'E' => self.failed = true,
                b'1' | b'2' | b'3' | b't' | b'T' | b'n' | b'C' | b'I' | b's' => self.due -= 1,
                _ => {}
            }
            self.seen.push(message);
        }
        Ok(())
    }

    fn copy_in(&mut self, rows: u8, fail: bool) -> Result<()> {
        frontend::query(&mut self.out, "copy plain (id, owner, label) from stdin");
        self.send()?;
        let first = self.client.receive()?;
        let taken = first.as_ref().is_some_and(|m| m.tag == b'G');
        self.seen.extend(first);
        if taken {
            for row in 0..rows {
                let id = u32::from(self.owner) * 1000 + u32::from(row);
                let line = format!("{id}\t{}\tcopied\n", self.owner);
                frontend::copy_data(&mut self.out, line.as_bytes());
            }
            match fail {
                true => frontend::copy_fail(&mut self.out, "enough"),
                false => frontend::copy_done(&mut self.out),
            }
            self.send()?;
        }
        let answer = self.client.until_ready()?;
        self.keep(answer)
    }

    fn leave(mut self) -> Result<()> {
        frontend::terminate(&mut self.out);
        self.send()?;
        let last = self.client.receive()?;
        anyhow::ensure!(last.is_none(), "a farewell was answered: {last:?}");
        Ok(())
    }
}

fn statement(name: Option<u8>) -> String {
    name.map_or(String::new(), |name| format!("s{name}"))
}
