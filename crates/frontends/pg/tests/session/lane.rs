//! A lane that is played by the test.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use tokio::sync::Notify;
use tokio::task::block_in_place;
use windrow_core::intake::Hint;
use windrow_core::{
    Apart, Arguments, Arrivals, Budget, Described, Describer, Extra, Fault, FaultClass, Formats,
    Generated, Intake, LanePorts, ParsedStatement, Signature, SqlCall, Statement, Submission,
    Touches, Unit, UnitFault, UnitOutcome, Write, WriteDone,
};
use windrow_pg::{Identity, LaneKey, Lanes};
use windrow_pgwire::target::Credential;
use windrow_testkit::pgclient::{Address, Client, Message, frontend};

/// What the test sees of the lanes, and does to them.
#[derive(Default)]
pub(crate) struct Control {
    /// Units that were executed: how many calls each had.
    pub(crate) units: Mutex<Vec<usize>>,
    /// The SETs of each lane that was opened.
    pub(crate) opened: Mutex<Vec<Vec<String>>>,
    /// How often something was described.
    pub(crate) described: AtomicUsize,
    /// The number of the next descriptions that lose their connection.
    pub(crate) lost: AtomicUsize,
    /// Statements that were described, to be retired.
    pub(crate) statements: Mutex<Vec<Arc<Statement>>>,
    /// Units that wait because the lane is held.
    pub(crate) waiting: AtomicUsize,
    /// The sequence from which calls take values, where the lane tells of them.
    pub(crate) sequence: Mutex<Option<u32>>,
    held: AtomicBool,
    released: Notify,
    came: Notify,
}

impl Control {
    /// From now on units wait.
    pub(crate) fn hold(&self) {
        self.held.store(true, Ordering::SeqCst);
    }

    /// Lets them go.
    pub(crate) fn release(&self) {
        self.held.store(false, Ordering::SeqCst);
        self.released.notify_one();
    }

    /// Waits until so many units wait.
    pub(crate) async fn wait_for(&self, units: usize) {
        while self.waiting.load(Ordering::SeqCst) < units {
            self.came.notified().await;
        }
    }

    pub(crate) fn units(&self) -> Vec<usize> {
        self.units.lock().unwrap().clone()
    }
}

/// All lanes.
pub(crate) struct Played {
    pub(crate) address: Address,
    pub(crate) budget: Budget,
    pub(crate) control: Arc<Control>,
}

#[async_trait]
impl Lanes for Played {
    async fn open(&self, key: &LaneKey) -> Result<LanePorts, Fault> {
        let set: Vec<String> = key
            .settings
            .set
            .iter()
            .map(|(_, s)| s.to_string())
            .collect();
        let connect = || {
            block_in_place(|| {
                let mut client = Client::connect(&self.address).unwrap();
                for sql in &set {
                    client.query(sql).unwrap();
                }
                client
            })
        };
        let (intake, arrivals) = Intake::channel(self.budget.clone(), 16);
        tokio::spawn(run(arrivals, connect(), Arc::clone(&self.control)));
        let mut asking = connect();
        // As a lane does: it does not wait long for the locks of others.
        asking.query("set lock_timeout = '100ms'").unwrap();
        let describer = Arc::new(Asker(Mutex::new(asking), Arc::clone(&self.control)));
        self.control.opened.lock().unwrap().push(set);
        Ok(LanePorts { intake, describer })
    }

    fn revoke(&self, _: &Identity, _: &Credential) {}
}

/// Takes literals for values of texts and numbers.
struct TextLiterals(Arc<Signature>);

impl Touches for TextLiterals {
    fn touches(&self, _: &Arguments, _: &Formats, _: &mut Vec<u8>, _: &mut Vec<u64>) {}

    fn takes_literal(&self, place: usize, literal: Option<&[u8]>) -> bool {
        let is_digits = |text: &[u8]| text.iter().all(u8::is_ascii_digit);
        let is_number = literal.is_none_or(is_digits);
        matches!(self.0.parameters[place], 25 | 1043) || is_number
    }
}

struct Asker(Mutex<Client>, Arc<Control>);

#[async_trait]
impl Describer for Asker {
    async fn describe(&self, parsed: &Arc<ParsedStatement>) -> Result<Described, Fault> {
        self.1.described.fetch_add(1, Ordering::SeqCst);
        let lost = &self.1.lost;
        let left = lost.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| {
            left.checked_sub(1)
        });
        if left.is_ok() {
            return Err(Fault::unavailable("the connection is lost"));
        }
        let Some(signature) = self.signature(parsed) else {
            return Ok(Described::Apart(Arc::new(Apart::of(
                "the server refuses it",
            ))));
        };
        let signature = Arc::new(signature);
        let touches = Arc::new(TextLiterals(Arc::clone(&signature)));
        let statement = Statement::new(Arc::clone(parsed), signature, touches);
        let statement = Arc::new(statement);
        let mut statements = self.1.statements.lock().unwrap();
        statements.push(Arc::clone(&statement));
        Ok(Described::Joined(statement))
    }

    async fn holds(&self, statement: &Statement) -> Result<bool, Fault> {
        let holds = self.signature(statement.parsed()).as_ref() == Some(&**statement.signature());
        if !holds {
            statement.retire();
        }
        Ok(holds)
    }

    async fn is_current(&self, statement: &Statement) -> Result<bool, Fault> {
        self.holds(statement).await
    }
}

impl Asker {
    /// The types that the server gives a parsed statement.
    fn signature(&self, parsed: &ParsedStatement) -> Option<Signature> {
        let answers = block_in_place(|| {
            let mut out = Vec::new();
            frontend::parse(&mut out, "", &parsed.text, &parsed.types);
            frontend::describe(&mut out, b'S', "");
            frontend::sync(&mut out);
            let mut client = self.0.lock().unwrap();
            client.send(&out).unwrap();
            client.until_ready().unwrap()
        });
        let body = |tag| {
            answers
                .iter()
                .find(|m| m.tag == tag)
                .map(|m| m.body.clone())
        };
        let types = body(b't')?;
        let types = types[2..].chunks_exact(4);
        Some(Signature {
            parameters: types
                .map(|oid| u32::from_be_bytes(oid.try_into().unwrap()))
                .collect(),
            fields: body(b'T').map(Vec::into_boxed_slice),
        })
    }
}

async fn run(mut arrivals: Arrivals, mut client: Client, control: Arc<Control>) {
    let mut queue: Vec<Submission> = Vec::new();
    loop {
        tokio::select! {
            came = arrivals.submissions.recv() => match came {
                Some(submission) => queue.push(submission),
                None => return,
            },
            Some(hint) = arrivals.hints.recv() => {
                while let Ok(submission) = arrivals.try_recv() {
                    queue.push(submission);
                }
                if let Hint::Cancel(source, _) = hint
                    && let Some(at) = queue.iter().position(|s| s.source == source)
                {
                    let fault = Fault::cancelled("the write was cancelled");
                    queue.remove(at).reply.send([Err(fault.into())]);
                }
            },
            () = control.released.notified() => {}
        }
        control.waiting.store(queue.len(), Ordering::SeqCst);
        control.came.notify_one();
        if control.held.load(Ordering::SeqCst) {
            continue;
        }
        let first = queue.first().map(|submission| submission.source);
        let is_shared = queue.iter().any(|one| Some(one.source) != first);
        for mut submission in queue.drain(..) {
            let outcome = block_in_place(|| execute(&mut client, &submission.units[0], &control));
            // The memory is free before anybody hears of it.
            drop(submission.permit);
            if is_shared {
                submission.reply.share();
            }
            submission.reply.send([outcome]);
        }
        control.waiting.store(0, Ordering::SeqCst);
    }
}

/// Executes a unit as its client would have.
fn execute(client: &mut Client, unit: &Unit, control: &Control) -> UnitOutcome {
    let calls = unit.writes();
    let count = calls.len();
    control.units.lock().unwrap().push(count);
    let mut out = Vec::new();
    let calls = calls.iter().filter_map(Write::call);
    calls.for_each(|call| send(&mut out, call));
    frontend::sync(&mut out);
    client.send(&out).unwrap();
    let mut answers = client.until_ready().unwrap();
    answers.pop();
    let mut dones = Vec::new();
    let (mut messages, mut bound) = (Vec::new(), 0);
    for message in &answers {
        match message.tag {
            b'C' => {
                let command = message.command().unwrap();
                let rows = command.rsplit(' ').next().unwrap().parse().unwrap();
                dones.push(WriteDone {
                    extra: Some(Box::new(Extra {
                        messages: std::mem::take(&mut messages).into(),
                        generated: None,
                        signature: None,
                    })),
                    ..WriteDone::rows(rows)
                });
            }
            b'2' => bound += 1,
            b'E' => {
                if bound > dones.len() {
                    messages.splice(..0, Fault::BIND_COMPLETE.iter().copied());
                }
                messages.extend(bytes(message));
                let code = message.sqlstate().unwrap();
                let text = message.field(b'M').unwrap();
                let fault = Fault::new(FaultClass::Other, code, text).with_verbatim(messages);
                return Err(UnitFault {
                    at: dones.len().min(count - 1),
                    fault,
                    before: dones,
                });
            }
            b'D' | b'N' => messages.extend(bytes(message)),
            _ => {}
        }
    }
    if let Some(sequence) = *control.sequence.lock().unwrap()
        && let Some(last) = lastval(client)
    {
        // Each call took one, nobody else meanwhile.
        for (value, done) in (0..=last).rev().zip(dones.iter_mut().rev()) {
            if let Some(extra) = done.extra.as_mut() {
                extra.generated = Some(Generated { sequence, value });
            }
        }
    }
    Ok(dones.into())
}

fn send(out: &mut Vec<u8>, call: &SqlCall) {
    let parsed = call.statement.parsed();
    let sql = call
        .origin
        .as_ref()
        .map_or(&*parsed.text, |origin| origin.as_str());
    let own = call
        .origin
        .as_ref()
        .map(|origin| origin.own.unwrap_or_default());
    let types = &parsed.types[..own.unwrap_or(parsed.types.len())];
    frontend::parse(out, "", sql, types);
    let count = own.unwrap_or(call.statement.parameters().len());
    let all: usize = call
        .arguments
        .iter()
        .map(|value| 4 + value.map_or(0, <[u8]>::len))
        .sum();
    let behind = call
        .arguments
        .iter()
        .skip(count)
        .map(|value| 4 + value.map_or(0, <[u8]>::len));
    let values = &call.arguments.as_bytes()[..all - behind.sum::<usize>()];
    let codes = |binary: &mut dyn FnMut(usize) -> bool, count: usize| {
        let mut codes = u16::try_from(count).unwrap().to_be_bytes().to_vec();
        for place in 0..count {
            codes.extend(u16::from(binary(place)).to_be_bytes());
        }
        codes
    };
    let columns = call
        .statement
        .fields()
        .map_or(0, |f| usize::from(u16::from_be_bytes([f[0], f[1]])));
    frontend::message(out, b'B', |body| {
        body.extend([0, 0]);
        body.extend(codes(&mut |place| call.formats.is_binary(place), count));
        body.extend(u16::try_from(count).unwrap().to_be_bytes());
        body.extend(values);
        body.extend(codes(&mut |place| call.results.is_binary(place), columns));
    });
    frontend::execute(out, "", 0);
}

fn bytes(message: &Message) -> Vec<u8> {
    let mut out = Vec::new();
    frontend::message(&mut out, message.tag, |body| body.extend(&message.body));
    out
}

fn lastval(client: &mut Client) -> Option<i64> {
    let answers = client.query("select lastval()").unwrap();
    windrow_testkit::pgclient::backend::first_value(&answers)?
        .parse()
        .ok()
}
