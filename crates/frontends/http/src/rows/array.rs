//! Finds where each object of a JSON array ends, without reading what is in it.

use crate::rows::MAX_DEPTH;
use crate::rows::object::too_deep;

/// The position of the text in the array. The content of an object is followed only as far as its
/// end depends on it; the reader of the object checks the rest.
#[derive(Debug, Default)]
pub(crate) struct ArrayCutter {
    state: State,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// Before the opening bracket.
    #[default]
    Start,
    /// Behind it: an object or the end.
    First,
    /// Behind a comma: an object.
    Next,
    /// Behind an object: a comma or the end.
    After,
    /// Behind the closing bracket: nothing but blanks.
    End,
    /// In an object, this deep.
    Inside(usize),
    /// In a string of an object this deep.
    Quoted(usize),
    /// Behind a backslash in such a string.
    Escaped(usize),
}

impl ArrayCutter {
    /// Returns the place behind the object that ends first in this text, which follows what was
    /// given before.
    ///
    /// # Errors
    /// What is wrong with the array, and at which byte of this text.
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
