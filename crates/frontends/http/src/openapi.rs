//! The description of the API, including extensions.

use std::ops::Range;

const OWN: &str = include_str!("openapi.json");

/// The sections that an extension may add to, and their depth in the description.
const SECTIONS: [(&str, usize); 4] = [
    ("paths", 1),
    ("parameters", 2),
    ("schemas", 2),
    ("responses", 2),
];

/// Returns the whole description: the frontend's own, followed by the entries of each of `extra`.
/// It is composed as text, so that all entries keep their order.
pub(crate) fn description<'a>(extra: impl IntoIterator<Item = &'a str>) -> String {
    let mut text = OWN.to_owned();
    for extra in extra {
        for (name, depth) in SECTIONS {
            let added = entries(extra, name, depth).and_then(|place| extra.get(place));
            if let (Some(own), Some(added)) = (entries(&text, name, depth), added) {
                text.insert_str(own.end, &format!(",{added}"));
            }
        }
    }
    text
}

/// Returns the range of a section's entries: from its opening brace to the line that closes it.
fn entries(text: &str, name: &str, depth: usize) -> Option<Range<usize>> {
    let indent = " ".repeat(depth);
    let opening = format!("\n{indent}\"{name}\": {{");
    let start = text.find(&opening)? + opening.len();
    let length = text.get(start..)?.find(&format!("\n{indent}}}"))?;
    Some(start..start + length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn an_extension_adds_behind_what_is_there() {
        let extra = "{\n \"paths\": {\n  \"/x\": {}\n },\n \"components\": {\n  \"schemas\": {\n   \"X\": {}\n  }\n }\n}\n";
        let whole: Value = serde_json::from_str(&description([extra])).unwrap();
        let mut own: Value = serde_json::from_str(&description([])).unwrap();
        own["paths"]["/x"] = json!({});
        own["components"]["schemas"]["X"] = json!({});
        assert_eq!(whole, own);
    }
}
