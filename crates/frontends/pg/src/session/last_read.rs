//! The long text that was read last, as long as its message waits in the inbox.
//!
//! Many parts of a session ask what the message at the front of the inbox says, some of them each
//! time that bytes come. The cache has short texts; a long one is kept here. Never asks a server.

use parking_lot::Mutex;

use crate::charge::FREE_BYTES;

/// The place of a text in the inbox, and the settings by which it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TextKey {
    at: usize,
    len: usize,
    settings: [bool; 3],
}

impl TextKey {
    /// Returns the key of a long text within the inbox; `None` for any other text.
    fn of(inbox: &[u8], text: &[u8], settings: [bool; 3]) -> Option<Self> {
        let (at, len) = (text.as_ptr().addr(), text.len());
        let at = at.checked_sub(inbox.as_ptr().addr())?;
        let is_within = at.checked_add(len)? <= inbox.len();
        (len > FREE_BYTES && is_within).then_some(Self { at, len, settings })
    }
}

/// The result of reading a long text.
#[derive(Debug)]
pub(super) struct LastRead<T>(Mutex<Option<(TextKey, T)>>);

impl<T> Default for LastRead<T> {
    fn default() -> Self {
        Self(Mutex::new(None))
    }
}

impl<T: Clone> LastRead<T> {
    /// Returns the result of reading a text by these settings.
    pub(super) fn get(
        &self,
        inbox: &[u8],
        text: &[u8],
        settings: [bool; 3],
        reads: impl FnOnce() -> T,
    ) -> T {
        let Some(key) = TextKey::of(inbox, text, settings) else {
            return reads();
        };
        if let Some((known, result)) = &*self.0.lock()
            && *known == key
        {
            return result.clone();
        }
        let result = reads();
        *self.0.lock() = Some((key, result.clone()));
        result
    }

    /// Forgets the result: bytes are taken out of the inbox.
    pub(super) fn forget(&mut self) {
        *self.0.get_mut() = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_read_once_as_long_as_it_stands_in_its_place() {
        let inbox = vec![b' '; 3 * FREE_BYTES];
        let (long, other) = (&inbox[1..=FREE_BYTES + 1], &inbox[2..FREE_BYTES + 3]);
        let mut last = LastRead::default();
        let mut count = 0;
        let mut read = |last: &LastRead<usize>, text: &[u8], settings| {
            last.get(&inbox, text, settings, || {
                count += 1;
                count
            })
        };
        let settings = [true, false, false];
        assert_eq!(read(&last, long, settings), 1);
        assert_eq!(read(&last, long, settings), 1);
        assert_eq!(read(&last, long, [false; 3]), 2);
        assert_eq!(read(&last, other, [false; 3]), 3);
        assert_eq!(read(&last, other, [false; 3]), 3);
        last.forget();
        assert_eq!(read(&last, other, [false; 3]), 4);
        // Short texts, and those that stand elsewhere.
        let elsewhere = vec![b' '; 2 * FREE_BYTES];
        for text in [&inbox[..FREE_BYTES], &elsewhere[..]] {
            let first = read(&last, text, settings);
            assert_eq!(read(&last, text, settings), first + 1);
        }
    }
}
