//! Keys that contain the time of the write: `primary key (device, time)` with the current time as
//! the default. SQLite's clock counts milliseconds, and a batch writes many rows in one. A row
//! whose key another row got in the same millisecond waits for the next one. Alone it would have
//! come later too.

use std::collections::HashSet;
use std::hash::{BuildHasher, Hash, Hasher};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use foldhash::fast::FixedState;

use crate::values::packed::Datum;

/// The resolution of SQLite's clock.
const MOMENT: Duration = Duration::from_millis(1);

/// The keys of the rows written in the last millisecond, without the time in them.
#[derive(Debug, Default)]
pub(crate) struct Moments {
    at: Duration,
    taken: HashSet<u64, FixedState>,
}

impl Moments {
    /// Waits until the clock shows a time that no row with these keys has.
    pub(crate) fn wait(&self, keys: &[u64]) {
        if keys.iter().all(|key| !self.taken.contains(key)) {
            return;
        }
        loop {
            let now = clock();
            // A clock that was set back shows other moments as well.
            if whole(now) != self.at {
                return;
            }
            std::thread::sleep((whole(now) + MOMENT).saturating_sub(now));
        }
    }

    /// Notes that a row of these keys has just been written.
    pub(crate) fn note(&mut self, keys: &[u64]) {
        if keys.is_empty() {
            return;
        }
        let now = whole(clock());
        if now != self.at {
            self.taken.clear();
            self.at = now;
        }
        self.taken.extend(keys);
    }
}

/// Hashes the values of the other columns of a key. Values that are equal in some column have the
/// same hash.
pub(crate) fn hash<'a>(table: &str, key: usize, values: impl Iterator<Item = Datum<'a>>) -> u64 {
    let mut hasher = FixedState::default().build_hasher();
    (table.to_ascii_lowercase(), key).hash(&mut hasher);
    for datum in values {
        match datum {
            Datum::Null => hasher.write_u8(0),
            Datum::Bool(b) => hash_text(if b { "1" } else { "0" }, &mut hasher),
            Datum::Int(n) => hash_text(&n.to_string(), &mut hasher),
            Datum::Number(text) | Datum::Text(text) | Datum::Json(text) => {
                hash_text(text, &mut hasher);
            }
            Datum::Bytes(bytes) => bytes.hash(&mut hasher),
        }
    }
    hasher.finish()
}

fn hash_text(text: &str, hasher: &mut impl Hasher) {
    let text = text.trim();
    match text.parse::<f64>() {
        Ok(number) => (number + 0.0).to_bits().hash(hasher),
        Err(_) => text.to_ascii_lowercase().hash(hasher),
    }
}

fn clock() -> Duration {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap_or_default()
}

/// Returns the time as SQLite's clock shows it.
fn whole(time: Duration) -> Duration {
    Duration::from_secs(time.as_secs()) + Duration::from_millis(time.subsec_millis().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_had_once_a_moment() {
        let mut moments = Moments::default();
        let mut seen = Vec::new();
        for n in 0..20_u64 {
            let keys = [n % 2];
            moments.wait(&keys);
            seen.push((n % 2, whole(clock())));
            moments.note(&keys);
        }
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 20);
    }

    #[test]
    fn equal_values_have_one_hash() {
        let of = |datum| hash("t", 0, std::iter::once(datum));
        for same in [Datum::Text("7"), Datum::Number("7.0"), Datum::Text(" 7")] {
            assert_eq!(of(same), of(Datum::Int(7)), "{same:?}");
        }
        assert_eq!(of(Datum::Text("A")), of(Datum::Text("a")));
        assert_ne!(of(Datum::Text("a")), of(Datum::Text("b")));
        assert_ne!(of(Datum::Null), of(Datum::Int(0)));
    }
}
