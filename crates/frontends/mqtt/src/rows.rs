//! A message to writes: one JSON object, or an array of objects.

use std::sync::Arc;

use windrow_core::shape::ShapeParts;
use windrow_core::{Fault, Key, Name, Op, Returning, Shape, Value, Write};
use windrow_http::extension::object::{self, Columns};

use crate::config::TopicConfig;

/// Layouts that are kept for each topic.
const MOST_LAYOUTS: usize = 8;

/// The writes of the messages of some topics.
#[derive(Debug)]
pub(crate) struct Rows {
    topic: TopicConfig,
    /// The layouts of recent rows; the last one is the most likely.
    layouts: Vec<Layout>,
}

/// The columns of rows that have the same members.
#[derive(Debug)]
struct Layout {
    /// The members of a row, as a guess for the next one.
    members: Arc<Shape>,
    /// The columns that are written.
    written: Arc<Shape>,
    /// The place of each column of the topic among the members; `None` for one behind them.
    places: Vec<Option<usize>>,
}

/// The content of a message.
#[derive(Debug, Default)]
pub(crate) struct MessageRows {
    /// The rows.
    pub(crate) writes: Vec<Write>,
    /// The message or elements of its array that are no rows, each with the reason.
    pub(crate) refused: Vec<(Box<[u8]>, Fault)>,
}

impl Rows {
    pub(crate) fn new(topic: TopicConfig) -> Self {
        Self {
            topic,
            layouts: Vec::new(),
        }
    }

    pub(crate) fn topic(&self) -> &TopicConfig {
        &self.topic
    }

    /// Returns the content of a message. `of_topic`: the values of the columns that the topic
    /// gives, which replace those of the message.
    pub(crate) fn read(&mut self, payload: &[u8], of_topic: &[Value]) -> MessageRows {
        let mut found = MessageRows::default();
        match elements(payload) {
            Ok(texts) => {
                for text in texts {
                    match self.row(text, of_topic) {
                        Ok(write) => found.writes.push(write),
                        Err(fault) => found.refused.push((text.as_bytes().into(), fault)),
                    }
                }
            }
            Err(fault) => found.refused.push((payload.into(), fault)),
        }
        found
    }

    fn row(&mut self, text: &str, of_topic: &[Value]) -> Result<Write, Fault> {
        let guess = self.layouts.last().map(|layout| &layout.members);
        let (columns, mut values) = object::read(text.as_bytes(), guess, of_topic.len())
            .map_err(object::RowError::into_fault)?;
        if let Columns::Named(names) = columns {
            self.select(names);
        } else if self.layouts.is_empty() {
            self.select(Vec::new());
        }
        let Some(layout) = self.layouts.last() else {
            return Err(Fault::internal("a row has no layout"));
        };
        for (place, value) in layout.places.iter().zip(of_topic) {
            match place.and_then(|place| values.get_mut(place)) {
                Some(member) => *member = value.clone(),
                None => values.push(value.clone()),
            }
        }
        Ok(Write::new(Arc::clone(&layout.written), values))
    }

    /// Makes the layout with these members the last one.
    fn select(&mut self, members: Vec<Name>) {
        let known = self
            .layouts
            .iter()
            .position(|known| *known.members.columns == *members);
        let layout = match known {
            Some(place) => self.layouts.remove(place),
            None => self.layout(members),
        };
        if self.layouts.len() >= MOST_LAYOUTS {
            self.layouts.remove(0);
        }
        self.layouts.push(layout);
    }

    fn layout(&self, members: Vec<Name>) -> Layout {
        let mut columns = members.clone();
        let mut places = Vec::new();
        for name in self.topic.pattern.columns() {
            let place = members.iter().position(|member| member == name);
            if place.is_none() {
                columns.push(name.clone());
            }
            places.push(place);
        }
        Layout {
            members: self.shape(members),
            written: self.shape(columns),
            places,
        }
    }

    fn shape(&self, columns: Vec<Name>) -> Arc<Shape> {
        Arc::new(Shape::new(ShapeParts {
            op: Op::Insert,
            table: self.topic.table.clone(),
            columns: columns.into(),
            key: Key::Primary,
            on_conflict: self.topic.on_conflict,
            returning: Returning::Nothing,
        }))
    }
}

/// Returns the texts of rows: the message, or the elements of its array.
fn elements(payload: &[u8]) -> Result<Vec<&str>, Fault> {
    let text = std::str::from_utf8(payload)
        .map_err(|error| Fault::invalid(format!("the message is not UTF-8: {error}")))?;
    if !text.trim_start().starts_with('[') {
        return Ok(vec![text.trim()]);
    }
    let rows: Vec<&serde_json::value::RawValue> = serde_json::from_str(text)
        .map_err(|error| Fault::invalid(format!("the message is no array of JSON: {error}")))?;
    Ok(rows.into_iter().map(|row| row.get()).collect())
}

#[cfg(test)]
mod tests {
    use windrow_core::{OnConflict, TableName};

    use super::*;

    fn rows(pattern: &str) -> Rows {
        Rows::new(TopicConfig {
            pattern: pattern.parse().unwrap(),
            table: TableName::bare("readings"),
            on_conflict: OnConflict::Ignore,
            spooled: false,
        })
    }

    fn shown(write: &Write) -> String {
        windrow_core::record::object(write.shape.columns.iter().zip(write.row()))
    }

    #[test]
    fn the_topic_and_the_message_make_a_row() {
        let mut rows = rows("devices/{device}/readings");
        let of_topic = rows.topic().pattern.values("devices/d1/readings").unwrap();
        let mut read = |text: &str| -> Vec<String> {
            let writes = rows.read(text.as_bytes(), &of_topic).writes;
            writes.iter().map(shown).collect()
        };
        let first = r#"{"celsius":21.5,"device":"d1"}"#;
        assert_eq!(read(r#"{"celsius":21.5}"#), [first]);
        assert_eq!(
            read(" [{\"celsius\": 21.5},\n{}] "),
            [first, r#"{"device":"d1"}"#]
        );
        // A device does not speak for another one.
        let spoofed = r#"{"device":"d1","celsius":1}"#;
        assert_eq!(read(r#"{"device": "d2", "celsius": 1}"#), [spoofed]);
        assert_eq!(read(r#"{"celsius":21.5}"#), [first]);
        assert!(read("[]").is_empty());
    }

    #[test]
    fn equal_rows_share_a_shape_and_few_are_kept() {
        let mut rows = rows("{device}");
        let of_topic = [Value::text("d1")];
        let mut shape = |text: String| {
            let writes = rows.read(text.as_bytes(), &of_topic).writes;
            Arc::clone(&writes[0].shape)
        };
        let first = shape(r#"{"a":1}"#.into());
        let other = shape(r#"{"b":1}"#.into());
        assert!(!Arc::ptr_eq(&first, &other));
        assert!(Arc::ptr_eq(&first, &shape(r#"{"a":2}"#.into())));
        for n in 0..100 {
            shape(format!("{{\"c{n}\":1}}"));
        }
        assert_eq!(rows.layouts.len(), MOST_LAYOUTS);
    }

    #[test]
    fn what_is_no_row_is_told() {
        let mut rows = rows("a");
        for text in [
            "",
            "1",
            "null",
            "{",
            "[1]",
            "[{}",
            "{} {}",
            "{\"a\":1,\"a\":2}",
        ] {
            let found = rows.read(text.as_bytes(), &[]);
            assert_eq!((found.writes.len(), found.refused.len()), (0, 1), "{text}");
        }
        let found = rows.read(b"{\"a\":\"\xff\"}", &[]);
        let (_, fault) = &found.refused[0];
        assert!(fault.message.contains("UTF-8"), "{fault}");
    }

    #[test]
    fn only_the_bad_elements_of_an_array_are_refused() {
        let mut rows = rows("a");
        let found = rows.read(br#"[{"a":1}, 2, {"a":3}, {"a":1,"a":2}]"#, &[]);
        let written: Vec<_> = found.writes.iter().map(shown).collect();
        assert_eq!(written, [r#"{"a":1}"#, r#"{"a":3}"#]);
        let refused: Vec<&[u8]> = found.refused.iter().map(|(text, _)| &**text).collect();
        assert_eq!(refused, [&b"2"[..], br#"{"a":1,"a":2}"#]);
    }
}
