//! Packets that a client saw, made comparable.

use std::ops::Range;

use crate::raw::Packets;

/// Generated numbers are in this range, and nothing else is.
const GENERATED: Range<u64> = 5_000_000_000..6_000_000_000;

/// The names of databases of this test begin so, and all are equally long.
const DATABASE: &[u8] = b"db_";

/// All answers of a session, step by step.
#[derive(Debug, Default)]
pub struct Transcript {
    steps: Vec<(String, Packets)>,
    /// Generated numbers in the order in which they were seen.
    generated: Vec<u64>,
    broke: Option<String>,
}

impl Transcript {
    /// Takes the answer to a command.
    pub fn add(&mut self, command: String, answer: Packets) {
        let is_alone = answer.len() == 1;
        let answer = answer
            .into_iter()
            .map(|(n, packet)| (n, self.comparable(&without_plan(packet, is_alone))));
        let answer = answer.collect();
        self.steps.push((command, answer));
    }

    /// Notes that the session ended before its time.
    pub fn broke(&mut self, why: String) {
        self.broke = Some(why);
    }

    /// Returns the first place at which this transcript differs from another one.
    pub fn difference(&self, plain: &Self) -> Option<String> {
        let pairs = self.steps.iter().zip(&plain.steps);
        let first = pairs.enumerate().find(|(_, (a, b))| a.1 != b.1);
        if let Some((at, ((command, tried), (_, plain)))) = first {
            let mut text = format!("step {at}: {command}\n  tried: {}", shown(tried));
            text.push_str(&format!("\n  plain: {}\n  before:\n", shown(plain)));
            for (command, answer) in &self.steps[..at] {
                text.push_str(&format!("    {command}\n      {}\n", shown(answer)));
            }
            return Some(text);
        }
        let has_ended = self.broke.is_some() || plain.broke.is_some();
        has_ended.then(|| format!("ended: {:?}, plain: {:?}", self.broke, plain.broke))
    }

    /// Returns true if an answer has an error of one of these numbers.
    pub fn has_error(&self, numbers: &[u16]) -> bool {
        let mut packets = self.steps.iter().flat_map(|(_, answer)| answer);
        packets.any(|(_, packet)| match packet[..] {
            [0xff, a, b, ..] => numbers.contains(&u16::from_le_bytes([a, b])),
            _ => false,
        })
    }

    /// Returns a packet with each generated number replaced by its place among those seen, in text
    /// or in eight bytes, and each database's name by one.
    fn comparable(&mut self, packet: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(packet.len());
        let of = |number: Option<u64>| number.filter(|n| GENERATED.contains(n));
        let (mut at, mut digits_end) = (0, 0);
        while let Some(rest) = packet.get(at..).filter(|rest| !rest.is_empty()) {
            let binary = rest.first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
            let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
            let text = std::str::from_utf8(&rest[..digits]).unwrap().parse().ok();
            if let Some(number) = of(text.filter(|_| at >= digits_end)) {
                out.extend(self.name(number));
                at += digits;
            } else if let Some(number) = of(binary) {
                out.extend(self.name(number));
                at += 8;
            } else if rest.starts_with(DATABASE) && rest.len() >= 8 {
                out.extend_from_slice(b"database");
                at += 8;
            } else {
                digits_end = digits_end.max(at + digits);
                out.push(rest[0]);
                at += 1;
            }
        }
        out
    }

    fn name(&mut self, number: u64) -> Vec<u8> {
        let at = self.generated.iter().position(|known| *known == number);
        let at = at.unwrap_or_else(|| {
            self.generated.push(number);
            self.generated.len() - 1
        });
        format!("#{at}").into_bytes()
    }
}

/// Clears the flags that say if an index was used: that depends on how many rows other clients have
/// written.
fn without_plan(mut packet: Vec<u8>, is_alone: bool) -> Vec<u8> {
    // The flags stand behind the number of warnings, or behind two numbers of one byte.
    let is_write = is_alone && packet[0] == 0;
    if let [0xfe, _, _, flags, _] | [0xfe, 0, 0, flags, _, _, ..] = &mut packet[..] {
        *flags &= !0x30;
    } else if let [0, _, 0, flags, ..] = &mut packet[..]
        && is_write
    {
        *flags &= !0x30;
    }
    packet
}

fn shown(packets: &Packets) -> String {
    let packets = packets
        .iter()
        .map(|(n, packet)| format!("{n}:{}", packet.escape_ascii()));
    packets.collect::<Vec<_>>().join(" | ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_numbers_are_counted_as_they_are_seen() {
        let mut transcript = Transcript::default();
        let seen = transcript.comparable(b"5000000007, 12, 5000000003 5000000007 of db_tried.t");
        assert_eq!(seen, b"#0, 12, #1 #0 of database.t");
        let ok = [
            &[0, 1, 0xfe],
            &5_000_000_003_u64.to_le_bytes()[..],
            b"\x02\0",
        ]
        .concat();
        assert_eq!(transcript.comparable(&ok), b"\0\x01\xfe#1\x02\0");
    }
}
