//! Arrays whose elements are parsed one by one later. The list of elements is charged as it grows,
//! and ends at the limit of rows.

use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::rc::Rc;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error as _, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::answers::Refusal;
use crate::app::App;
use crate::bodies::charge::Charge;
use crate::rows::MAX_COLUMNS;

/// The first capacity of a list.
const FIRST_CAPACITY: usize = 64;

/// Reads the elements of a body that is an array.
///
/// # Errors
/// Outside: more elements than one body may have, or no memory for their list. Inside: the body is
/// no array of JSON.
pub fn elements<'w>(
    app: &App,
    body: &'w [u8],
    charge: &mut Charge,
) -> Result<serde_json::Result<Vec<&'w RawValue>>, Refusal> {
    read(app, body, charge, |elements| elements)
}

/// Reads a body by a seed, which is created from the seed of its elements.
///
/// # Errors
/// As [`elements`].
pub(crate) fn read<'w, 's, S: DeserializeSeed<'w>>(
    app: &'s App,
    body: &'w [u8],
    charge: &'s mut Charge,
    seed: impl FnOnce(Elements<'s>) -> S,
) -> Result<serde_json::Result<S::Value>, Refusal> {
    let refused = Rc::default();
    let elements = Elements {
        app,
        charge,
        refused: Rc::clone(&refused),
    };
    let mut json = serde_json::Deserializer::from_slice(body);
    let value = seed(elements).deserialize(&mut json);
    let value = value.and_then(|value| json.end().map(|()| value));
    refused.take().map_or(Ok(value), Err)
}

/// Reads an array.
pub(crate) struct Elements<'s> {
    app: &'s App,
    charge: &'s mut Charge,
    /// The reason why it was not read to its end.
    refused: Rc<Cell<Option<Refusal>>>,
}

impl Elements<'_> {
    fn make_room(&mut self, list: &mut Vec<&RawValue>) -> Result<(), Refusal> {
        self.app.check_rows(list.len() + 1)?;
        if list.len() == list.capacity() {
            let more = list.len().max(FIRST_CAPACITY);
            self.charge.add(more * size_of::<&RawValue>())?;
            list.reserve_exact(more);
        }
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Elements<'_> {
    type Value = Vec<&'de RawValue>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
        json.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Elements<'_> {
    type Value = Vec<&'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut array: A) -> Result<Self::Value, A::Error> {
        let mut list = Vec::new();
        while let Some(element) = array.next_element()? {
            if let Err(refusal) = self.make_room(&mut list) {
                self.refused.set(Some(refusal));
                return Err(A::Error::custom("refused"));
            }
            list.push(element);
        }
        Ok(list)
    }
}

/// An array of at most as many elements as a row may have columns.
pub(crate) struct ShortArray<T>(pub(crate) Vec<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for ShortArray<T> {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        json.deserialize_seq(FewVisitor(PhantomData))
    }
}

struct FewVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for FewVisitor<T> {
    type Value = ShortArray<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an array of {MAX_COLUMNS} elements at most")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<Self::Value, A::Error> {
        let mut list = Vec::new();
        while let Some(element) = array.next_element()? {
            if list.len() == MAX_COLUMNS {
                return Err(A::Error::invalid_length(list.len() + 1, &self));
            }
            list.push(element);
        }
        Ok(ShortArray(list))
    }
}
