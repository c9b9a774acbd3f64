//! Messages that are not acknowledged. The subscriber calls for every message that comes or ends.
//!
//! Messages of one topic are acknowledged in their order: what the broker sends again after a break
//! begins with the first that it has no acknowledgement of. A message of an earlier connection is
//! never acknowledged, because another message may have its number by then.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use foldhash::fast::RandomState;
use parking_lot::Mutex;
use rumqttc::v5::AsyncClient;
use rumqttc::v5::mqttbytes::v5::Publish;
use tracing::warn;

/// The number of the open connection, which the connection sets; 0 if none is open.
#[derive(Clone, Debug, Default)]
pub(crate) struct OpenConnection(Arc<Mutex<u64>>);

impl OpenConnection {
    pub(crate) fn set(&self, number: u64) {
        *self.0.lock() = number;
    }

    /// Sends acknowledgements of messages whose connection is open.
    pub(crate) fn acknowledge(&self, client: &AsyncClient, ended: Vec<Acknowledgement>) {
        // Held until the queue has them: a connection that breaks empties the queue.
        let open = self.0.lock();
        for Acknowledgement {
            message,
            connection,
        } in ended
        {
            if *open == connection
                && let Err(fault) = client.try_ack(&message)
            {
                warn!(%fault, "a message cannot be acknowledged; the MQTT broker sends it again");
            }
        }
    }
}

/// An acknowledgement, for the connection on which its message came last.
#[derive(Debug)]
pub(crate) struct Acknowledgement {
    /// The message, without its content.
    message: Publish,
    connection: u64,
}

/// The messages that are not acknowledged. Pure.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    /// Messages by the numbers that the broker gave them.
    of: Numbers,
    /// The messages of each topic, in the order in which they came.
    topics: HashMap<Box<[u8]>, VecDeque<Unacknowledged>, RandomState>,
    /// The number of the connection.
    connection: u64,
    next_ticket: u64,
}

type Numbers = HashMap<u16, Numbered, RandomState>;

/// A message that the broker has given a number.
#[derive(Debug)]
struct Numbered {
    ticket: u64,
    /// The connection on which the message came last.
    connection: u64,
}

/// A message of a topic.
#[derive(Debug)]
struct Unacknowledged {
    ticket: u64,
    state: MessageState,
}

#[derive(Debug)]
enum MessageState {
    UnderWay,
    /// The rows of the message are safe. Holds the message without its content.
    Safe(Box<Publish>),
    /// The broker has to send the message again.
    Left,
}

impl Messages {
    /// Returns the number of messages that are not acknowledged.
    pub(crate) fn count(&self) -> usize {
        self.of.len()
    }

    /// Notes that a connection is open. `resumed`: the broker sends again what is not acknowledged.
    pub(crate) fn connected(&mut self, resumed: bool) {
        self.connection += 1;
        if !resumed {
            // The broker counts its messages from the start: the old numbers say nothing.
            self.of.clear();
        }
        let of = &mut self.of;
        self.topics.retain(|_, messages| {
            let is_left = |message: &Unacknowledged| matches!(message.state, MessageState::Left);
            if messages.iter().any(is_left) {
                messages.retain(|message| match &message.state {
                    MessageState::UnderWay => true,
                    MessageState::Safe(safe) => {
                        forget(of, safe.pkid, message.ticket);
                        false
                    }
                    MessageState::Left => false,
                });
            }
            !messages.is_empty()
        });
    }

    /// Takes a message and returns its ticket; `None` if its rows are under way since an earlier
    /// connection.
    pub(crate) fn begin(&mut self, message: &Publish) -> Option<u64> {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        // Messages without an acknowledgement have no number.
        if message.pkid != 0 {
            let connection = self.connection;
            match self.of.entry(message.pkid) {
                Entry::Occupied(mut known) => {
                    known.get_mut().connection = connection;
                    return None;
                }
                Entry::Vacant(place) => place.insert(Numbered { ticket, connection }),
            };
            let state = MessageState::UnderWay;
            let messages = self.topics.entry((*message.topic).into()).or_default();
            messages.push_back(Unacknowledged { ticket, state });
        }
        Some(ticket)
    }

    /// Notes the end of a message, and returns the acknowledgements that its topic has waited for.
    pub(crate) fn end(
        &mut self,
        ticket: u64,
        mut message: Publish,
        is_safe: bool,
    ) -> Vec<Acknowledgement> {
        let topic = std::mem::take(&mut message.topic);
        let mut messages = self.topics.get_mut(&*topic).into_iter().flatten();
        let Some(ended) = messages.find(|message| message.ticket == ticket) else {
            return Vec::new();
        };
        if is_safe {
            (message.payload, message.properties) = Default::default();
            ended.state = MessageState::Safe(Box::new(message));
        } else {
            ended.state = MessageState::Left;
            forget(&mut self.of, message.pkid, ticket);
        }
        self.acknowledgements(&topic)
    }

    /// Takes the messages of a topic up to the first whose rows are not safe.
    fn acknowledgements(&mut self, topic: &[u8]) -> Vec<Acknowledgement> {
        let mut found = Vec::new();
        while let Some((ticket, message)) = self.next_safe(topic) {
            if let Some(connection) = forget(&mut self.of, message.pkid, ticket) {
                let message = *message;
                found.push(Acknowledgement {
                    message,
                    connection,
                });
            }
        }
        if self.topics.get(topic).is_some_and(VecDeque::is_empty) {
            self.topics.remove(topic);
        }
        found
    }

    fn next_safe(&mut self, topic: &[u8]) -> Option<(u64, Box<Publish>)> {
        let messages = self.topics.get_mut(topic)?;
        match messages.pop_front()? {
            Unacknowledged {
                ticket,
                state: MessageState::Safe(message),
            } => Some((ticket, message)),
            first => {
                messages.push_front(first);
                None
            }
        }
    }
}

/// Forgets the number of a message, and returns the connection on which the message came last;
/// `None` if the number is another message's.
fn forget(of: &mut Numbers, number: u16, ticket: u64) -> Option<u64> {
    match of.entry(number) {
        Entry::Occupied(known) if known.get().ticket == ticket => Some(known.remove().connection),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use rumqttc::v5::mqttbytes::QoS;

    use super::*;

    fn message(topic: &'static str, number: u16) -> Publish {
        let mut message = Publish::new(topic, QoS::AtLeastOnce, "{}", None);
        message.pkid = number;
        message
    }

    /// Returns the numbers of the messages that are acknowledged on the connection.
    fn numbers(messages: &Messages, ended: &[Acknowledgement]) -> Vec<u16> {
        let here = ended
            .iter()
            .filter(|ended| ended.connection == messages.connection);
        here.map(|ended| ended.message.pkid).collect()
    }

    /// Takes a message, and returns how it ends.
    fn begin(
        messages: &mut Messages,
        topic: &'static str,
        number: u16,
    ) -> impl FnOnce(&mut Messages, bool) -> Vec<u16> + use<> {
        let message = message(topic, number);
        let ticket = messages.begin(&message).unwrap();
        move |messages, is_safe| {
            let ended = messages.end(ticket, message, is_safe);
            numbers(messages, &ended)
        }
    }

    #[test]
    fn messages_of_a_topic_are_acknowledged_in_their_order() {
        let mut messages = Messages::default();
        messages.connected(false);
        let [first, second] = [1, 2].map(|number| begin(&mut messages, "a", number));
        let other = begin(&mut messages, "b", 3);
        assert!(second(&mut messages, true).is_empty());
        assert_eq!(other(&mut messages, true), [3]);
        assert_eq!(first(&mut messages, true), [1, 2]);
        assert_eq!((messages.count(), messages.topics.len()), (0, 0));
    }

    #[test]
    fn a_number_of_another_session_is_not_acknowledged() {
        let mut messages = Messages::default();
        messages.connected(false);
        let before = begin(&mut messages, "a", 1);
        messages.connected(false);
        let after = begin(&mut messages, "b", 1);
        assert!(before(&mut messages, true).is_empty());
        assert_eq!(after(&mut messages, true), [1]);
    }

    #[test]
    fn a_message_that_comes_again_while_it_is_under_way_is_acknowledged_once() {
        let mut messages = Messages::default();
        messages.connected(false);
        let [first, second] = [1, 2].map(|number| begin(&mut messages, "a", number));
        messages.connected(true);
        assert_eq!(messages.begin(&message("a", 1)), None);
        assert_eq!(first(&mut messages, true), [1]);
        let ended = second(&mut messages, true);
        assert!(ended.is_empty(), "the broker sends it again");
        let again = begin(&mut messages, "a", 2);
        assert_eq!(again(&mut messages, true), [2]);
    }

    #[test]
    fn what_follows_a_message_that_is_left_to_the_broker_comes_again_too() {
        let mut messages = Messages::default();
        messages.connected(false);
        let [first, second] = [1, 2].map(|number| begin(&mut messages, "a", number));
        assert!(first(&mut messages, false).is_empty());
        assert!(second(&mut messages, true).is_empty());
        messages.connected(true);
        let [first, second] = [1, 2].map(|number| begin(&mut messages, "a", number));
        assert_eq!(first(&mut messages, true), [1]);
        assert_eq!(second(&mut messages, true), [2]);
    }
}
