//! What a client saw, made comparable.

use std::fmt::Write as _;

use windrow_testkit::pgclient::Message;

/// All answers of a session, step by step.
#[derive(Debug, Default)]
pub struct Transcript {
    steps: Vec<(String, Vec<Message>)>,
    /// Generated ids in the order in which they were seen.
    generated: Vec<u64>,
    broke: Option<String>,
}

/// Generated ids are in this range, and nothing else is.
const GENERATED: std::ops::Range<u64> = 5_000_000_000..6_000_000_000;

impl Transcript {
    /// Takes what the server said at the start: the cancel key differs, the order of the parameters
    /// does not matter.
    pub fn startup(&mut self, messages: &[Message]) {
        let mut known: Vec<Message> = messages.iter().filter(|m| m.tag != b'K').cloned().collect();
        known.sort_by(|a, b| a.body.cmp(&b.body));
        self.steps.push(("startup".into(), known));
    }

    /// Takes the answer to a step.
    pub fn add(&mut self, step: String, answer: Vec<Message>) {
        let answer = answer.into_iter().map(|m| self.comparable(m)).collect();
        self.steps.push((step, answer));
    }

    /// The session ended before its time.
    pub fn broke(&mut self, why: String) {
        self.broke = Some(why);
    }

    /// Where this one and another differ first.
    pub fn difference(&self, plain: &Self) -> Option<String> {
        let pairs = self.steps.iter().zip(&plain.steps);
        let first = pairs.enumerate().find(|(_, (a, b))| a.1 != b.1);
        if let Some((at, ((step, tried), (_, plain)))) = first {
            let mut text = format!("step {at}: {step}\n  tried:\n");
            for (name, messages) in [("", tried), ("  plain:\n", plain)] {
                text.push_str(name);
                for message in messages {
                    writeln!(text, "    {message:?}").unwrap();
                }
            }
            return Some(text);
        }
        let ended = self.broke != plain.broke;
        ended.then(|| format!("ended: {:?}, plain: {:?}", self.broke, plain.broke))
    }

    /// An error that is not one of the other's, in their order. Whoever has what it writes deferred
    /// is told of it later, or rolls it back and is told nothing.
    pub fn invented(&self, plain: &Self) -> Option<String> {
        let mut theirs = plain.errors().into_iter();
        let mut ours = self.errors().into_iter();
        let invented = ours.find(|(_, code)| !theirs.any(|(_, their)| their == *code));
        let (step, code) = invented?;
        let theirs = plain.errors();
        Some(format!("{code} at step {step}, of {theirs:?}"))
    }

    /// Each error's step and code, but for those that only say that a transaction has failed
    /// before, or that there is none.
    fn errors(&self) -> Vec<(usize, String)> {
        let steps = self.steps.iter().enumerate();
        let codes = steps.flat_map(|(at, (_, messages))| {
            let codes = messages.iter().filter_map(Message::sqlstate);
            codes.map(move |code| (at, code))
        });
        codes
            .filter(|(_, code)| !["25P01", "25P02"].contains(&&**code))
            .collect()
    }

    fn comparable(&mut self, message: Message) -> Message {
        let body = match message.tag {
            b'D' => self.row(&message),
            b'T' => message.body,
            b'E' => self.replace(&without_place(&message)),
            _ => self.replace(&message.body),
        };
        Message {
            tag: message.tag,
            body,
        }
    }

    fn row(&mut self, message: &Message) -> Vec<u8> {
        let mut body = Vec::new();
        for value in message.values() {
            let binary = value.as_ref().and_then(|v| v.as_slice().try_into().ok());
            let id = binary
                .map(u64::from_be_bytes)
                .filter(|n| GENERATED.contains(n));
            let text = match (id, value) {
                (Some(id), _) => Some(self.name(id)),
                (None, value) => value.map(|v| self.replace(&v)),
            };
            match text {
                None => body.extend_from_slice(&[255; 4]),
                Some(text) => {
                    body.extend_from_slice(&u32::try_from(text.len()).unwrap().to_be_bytes());
                    body.extend_from_slice(&text);
                }
            }
        }
        let count = u16::try_from(message.values().len()).unwrap();
        [&count.to_be_bytes()[..], &body].concat()
    }

    fn name(&mut self, id: u64) -> Vec<u8> {
        let at = self.generated.iter().position(|known| *known == id);
        let at = at.unwrap_or_else(|| {
            self.generated.push(id);
            self.generated.len() - 1
        });
        format!("#{at}").into_bytes()
    }

    /// The same bytes with every generated id by its number.
    fn replace(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes.len());
        for run in bytes.chunk_by(|a, b| a.is_ascii_digit() == b.is_ascii_digit()) {
            let number = std::str::from_utf8(run).ok().and_then(|t| t.parse().ok());
            match number.filter(|n| GENERATED.contains(n)) {
                Some(id) => out.extend(self.name(id)),
                None => out.extend_from_slice(run),
            }
        }
        out
    }
}

/// An error without the place in the server's source: what Windrow answers itself has none.
fn without_place(message: &Message) -> Vec<u8> {
    let fields = message.fields().into_iter();
    let fields = fields.filter(|(code, _)| !b"FLR".contains(code));
    let fields = fields.map(|(code, text)| [&[code], text.as_bytes(), &[0]].concat());
    let mut body: Vec<u8> = fields.flatten().collect();
    body.push(0);
    body
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_ids_are_numbered_as_they_are_seen() {
        let mut transcript = Transcript::default();
        let seen = transcript.replace(b"(5000000007, 12) 5000000003 5000000007");
        assert_eq!(String::from_utf8(seen).unwrap(), "(#0, 12) #1 #0");
    }
}
