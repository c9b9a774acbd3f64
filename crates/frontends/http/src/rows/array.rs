//! Finds the end of each object in a JSON array, without parsing the objects.

use crate::rows::MAX_DEPTH;
use crate::rows::object::too_deep;

/// The state of the reader in the array. Within an object it only follows what decides its end; the
/// reader of the object checks the rest.
#[derive(Debug, Default)]
pub(crate) struct ArrayCutter {
    state: State,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// Before the opening bracket.
    #[default]
    Start,
    /// After the opening bracket: an object or the end.
    First,
    /// After a comma: an object.
    Next,
    /// After an object: a comma or the end.
    After,
    /// After the closing bracket: nothing but blanks.
    End,
    /// In an object, this deep.
    Inside(usize),
    /// In a string of an object this deep.
    Quoted(usize),
    /// After a backslash in such a string.
    Escaped(usize),
}

impl ArrayCutter {
    /// Returns the offset after the first object that ends in this text, which follows the earlier
    /// texts.
    ///
    /// # Errors
    /// The error in the array, and its byte in this text.
    pub(crate) fn cut(&mut self, text: &[u8]) -> Result<Option<usize>, (usize, String)> {
        for (at, byte) in text.iter().enumerate() {
            self.state = self.step(*byte).map_err(|message| (at, message))?;
            // The reader of the object refuses a bracket that closes a brace.
            if self.state == State::After && matches!(byte, b'}' | b']') {
                return Ok(Some(at + 1));
            }
        }
        Ok(None)
    }

    /// Checks that the array is complete.
    ///
    /// # Errors
    /// What is missing at the end of the body.
    pub(crate) fn finish(&self) -> Result<(), String> {
        match self.state {
            State::End => Ok(()),
            State::Inside(_) | State::Quoted(_) | State::Escaped(_) => Err(
                "the body is not valid JSON: it ends in the middle of an object of the array"
                    .into(),
            ),
            _ => Err("the body is not valid JSON: the array is not closed".into()),
        }
    }

    fn step(&self, byte: u8) -> Result<State, String> {
        Ok(match (self.state, byte) {
            (State::Quoted(depth), b'"') => State::Inside(depth),
            (State::Quoted(depth), b'\\') => State::Escaped(depth),
            (State::Quoted(depth) | State::Escaped(depth), _) => State::Quoted(depth),
            (State::Inside(depth), b'"') => State::Quoted(depth),
            (State::Inside(depth), b'{' | b'[') if depth < MAX_DEPTH => State::Inside(depth + 1),
            (State::Inside(_), b'{' | b'[') => return Err(too_deep()),
            (State::Inside(1), b'}' | b']') => State::After,
            (State::Inside(depth), b'}' | b']') => State::Inside(depth - 1),
            (State::Inside(depth), _) => State::Inside(depth),
            (state, b' ' | b'\t' | b'\n' | b'\r') => state,
            (State::Start, b'[') => State::First,
            (State::First | State::Next, b'{') => State::Inside(1),
            (State::First | State::After, b']') => State::End,
            (State::After, b',') => State::Next,
            (State::First | State::Next, _) => {
                return Err(
                    "each element of the array must be a JSON object with the columns of one row"
                        .into(),
                );
            }
            (State::After, _) => {
                return Err(
                    "the body is not valid JSON: expected a comma or the end of the array".into(),
                );
            }
            (State::Start, _) => return Err("the body is not valid JSON: expected an array".into()),
            (State::End, _) => {
                return Err(
                    "the body is not valid JSON: characters behind the end of the array".into(),
                );
            }
        })
    }
}
