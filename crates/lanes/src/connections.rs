//! The connections of a lane for batches. Each is being opened, idle, or has a flight under way.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;
use windrow_core::{Backoff, Sink, Unit};

use crate::batch::{Manifest, Span};
use crate::connection::BatchConnection;
use crate::connection::{Asker, interrupts};
use crate::failures::Failures;
use crate::message::{Order, Signals};
use crate::retry::connect_backoff;

#[derive(Debug)]
pub(crate) struct Connections {
    members: Vec<Member>,
    next_id: u64,
    /// Connections that were lost and not replaced yet.
    lost: usize,
    /// The time before which no further connection is opened, after one was refused while others
    /// work.
    no_more_before: Option<Instant>,
    backoff: Backoff,
}

#[derive(Debug)]
struct Member {
    id: u64,
    /// The channel to the connection's task, with capacity for one batch. The task of an idle
    /// connection has taken the last one.
    orders: mpsc::Sender<Order>,
    asker: Asker,
    state: State,
}

#[derive(Debug)]
enum State {
    Connecting,
    Idle { since: Instant },
    Flying(Flight),
}

/// A batch that could not be handed to a connection.
type Unsent = Box<(Vec<Unit>, Flight)>;

/// A batch under way.
#[derive(Debug)]
pub(crate) struct Flight {
    pub(crate) id: u64,
    pub(crate) manifest: Manifest,
    /// True if the rows that its units touch are known, so that another flight can leave beside it.
    pub(crate) keyed: bool,
    /// The number of flights under way when it left, itself included: only those that travel apart,
    /// or only those that do not, as it does itself.
    pub(crate) flying: usize,
    /// True if its units travel apart from others, so that those need not wait for them.
    pub(crate) is_apart: bool,
    /// True if its units had waited for another flight to end.
    pub(crate) waited: bool,
    /// Sources whose clients have cancelled their first unanswered unit, with the time of the
    /// request.
    pub(crate) called_back: Vec<(usize, Instant)>,
}

impl Connections {
    pub(crate) fn new() -> Self {
        Self {
            members: Vec::new(),
            next_id: 0,
            lost: 0,
            no_more_before: None,
            backoff: connect_backoff(),
        }
    }

    pub(crate) fn flights(&self) -> impl Iterator<Item = &Flight> {
        self.members
            .iter()
            .filter_map(|member| match &member.state {
                State::Flying(flight) => Some(flight),
                State::Connecting | State::Idle { .. } => None,
            })
    }

    /// Returns the number of open connections.
    pub(crate) fn connected(&self) -> usize {
        let connecting = |member: &&Member| matches!(member.state, State::Connecting);
        self.members.len() - self.members.iter().filter(connecting).count()
    }

    /// Returns the connection that became idle last: its caches are the warmest.
    pub(crate) fn idle(&self) -> Option<u64> {
        let idle = |member: &&Member| matches!(member.state, State::Idle { .. });
        self.members.iter().rfind(idle).map(|member| member.id)
    }

    /// True if another connection is needed and may be opened. Connections are opened one at a
    /// time, and not right after one was refused.
    pub(crate) fn wants_more(&self, limit: usize, now: Instant) -> bool {
        let connected = self.connected();
        let refused = connected > 0 && self.no_more_before.is_some_and(|at| now < at);
        connected < limit && connected == self.members.len() && !refused
    }

    /// Starts the task of another connection. The task connects and signals the worker.
    pub(crate) fn open(
        &mut self,
        sink: &Arc<dyn Sink>,
        signals: &Signals,
        tasks: &TaskTracker,
        failures: &Failures,
    ) {
        let (orders, receiver) = mpsc::channel(1);
        let (asker, asked) = interrupts();
        let id = self.next_id;
        self.next_id += 1;
        let connection = BatchConnection {
            id,
            sink: sink.clone(),
            orders: receiver,
            asked,
            signals: signals.clone(),
            failures: failures.clone(),
        };
        tasks.spawn(connection.run());
        let state = State::Connecting;
        self.members.push(Member {
            id,
            orders,
            asker,
            state,
        });
    }

    /// Notes that a connection is open. Returns true if it replaces a lost one.
    pub(crate) fn connected_now(&mut self, connection: u64, now: Instant) -> bool {
        if let Some(member) = self.member(connection) {
            member.state = State::Idle { since: now };
        }
        self.no_more_before = None;
        self.backoff.reset();
        let replaced = self.lost > 0;
        self.lost -= usize::from(replaced);
        replaced
    }

    /// Sends a batch to a connection. Returns the batch and its flight if the connection's task has
    /// ended.
    pub(crate) fn send(
        &mut self,
        connection: u64,
        units: Vec<Unit>,
        flight: Flight,
    ) -> Result<(), Unsent> {
        let Some(member) = self.member(connection) else {
            return Err(Box::new((units, flight)));
        };
        let order = Order {
            flight: flight.id,
            units,
        };
        match member.orders.try_send(order) {
            Ok(()) => {
                member.state = State::Flying(flight);
                Ok(())
            }
            Err(failed) => {
                self.dismiss(connection);
                Err(Box::new((failed.into_inner().units, flight)))
            }
        }
    }

    /// Cancels the first unanswered unit of a source. If the unit is the only one in its batch,
    /// interrupts the batch; otherwise notes the request until the batch has landed.
    pub(crate) fn call_back(&mut self, source: usize, asked: Instant) {
        for member in &mut self.members {
            let State::Flying(flight) = &mut member.state else {
                continue;
            };
            let spans = &flight.manifest.spans;
            let meant = |span: &&Span| span.source == source && span.arrived <= asked;
            if spans.iter().any(|span| meant(&span)) {
                if matches!(spans.as_slice(), [only] if only.count == 1) {
                    member.asker.ask(flight.id);
                }
                flight.called_back.push((source, asked));
            }
        }
    }

    /// Notes that a connection's flight has ended, and returns the flight.
    pub(crate) fn landed(&mut self, connection: u64, usable: bool, now: Instant) -> Option<Flight> {
        let member = self.member(connection)?;
        let before = std::mem::replace(&mut member.state, State::Idle { since: now });
        if !usable {
            self.dismiss(connection);
            self.lost += 1;
        }
        match before {
            State::Flying(flight) => Some(flight),
            State::Connecting | State::Idle { .. } => None,
        }
    }

    /// Closes the connections that have been idle for `after`. Returns the time at which the next
    /// one may be due; `None` if no connection remains.
    pub(crate) fn close_idle(&mut self, now: Instant, after: Duration) -> Option<Instant> {
        self.members.retain(|member| match member.state {
            State::Idle { since } => now.saturating_duration_since(since) < after,
            State::Connecting | State::Flying(_) => true,
        });
        let since = |member: &Member| match member.state {
            State::Idle { since } => since,
            State::Connecting | State::Flying(_) => now,
        };
        self.members.iter().map(since).min()?.checked_add(after)
    }

    /// Drops a connection; its task ends by itself.
    pub(crate) fn dismiss(&mut self, connection: u64) {
        self.members.retain(|member| member.id != connection);
    }

    /// Opens no further connections for a while.
    pub(crate) fn pause(&mut self, now: Instant) {
        let pause = self.backoff.delay();
        self.no_more_before = Some(now + pause);
    }

    fn member(&mut self, connection: u64) -> Option<&mut Member> {
        self.members
            .iter_mut()
            .find(|member| member.id == connection)
    }
}
