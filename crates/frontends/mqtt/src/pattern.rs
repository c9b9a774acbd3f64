//! Topics with named levels: `devices/{device}/readings`.

use std::fmt;
use std::str::FromStr;

use windrow_core::name::check_column;
use windrow_core::{Fault, Name, Value};

/// The most bytes of a topic (MQTT 5.0, section 1.5.4).
const MOST_BYTES: usize = 65_535;

/// One level of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Level {
    /// This text.
    Same(Box<str>),
    /// Any text (`+`), which becomes the value of the column, if one is named.
    Any(Option<Name>),
    /// All levels that follow, also none (`#`).
    Rest,
}

/// A pattern of topics. `{name}` takes the text of one level as the value of a column, `+` and `#`
/// are those of MQTT. A shared subscription begins with `$share/GROUP/`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    levels: Vec<Level>,
    /// The filter that the broker is asked for.
    filter: String,
}

impl Pattern {
    /// Returns the filter of MQTT.
    pub fn filter(&self) -> &str {
        &self.filter
    }

    /// Returns the columns that the topic gives, in the order of the levels.
    pub(crate) fn columns(&self) -> impl Iterator<Item = &Name> {
        self.levels.iter().filter_map(|level| match level {
            Level::Any(name) => name.as_ref(),
            Level::Same(_) | Level::Rest => None,
        })
    }

    /// Returns the values of the columns for a topic; `None` if the topic does not fit.
    pub(crate) fn values(&self, topic: &str) -> Option<Vec<Value>> {
        let mut found = Vec::new();
        let mut parts = topic.split('/');
        for level in &self.levels {
            match level {
                Level::Rest => return Some(found),
                Level::Same(text) => {
                    if parts.next()? != &**text {
                        return None;
                    }
                }
                Level::Any(name) => {
                    let part = parts.next()?;
                    if name.is_some() {
                        found.push(Value::text(part));
                    }
                }
            }
        }
        parts.next().is_none().then_some(found)
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.filter)
    }
}

impl FromStr for Pattern {
    type Err = Fault;

    fn from_str(text: &str) -> Result<Self, Fault> {
        let wrong =
            |what: &str| Fault::invalid(format!("{text:?} is no pattern of topics: {what}"));
        if text.is_empty() || text.len() > MOST_BYTES || text.contains('\0') {
            return Err(wrong("it is empty, too long or holds a NUL character"));
        }
        let (share, topic) = split_share(text).ok_or_else(|| wrong("write $share/GROUP/TOPIC"))?;
        let mut levels: Vec<Level> = Vec::new();
        for part in topic.split('/') {
            if levels.last() == Some(&Level::Rest) {
                return Err(wrong("nothing may follow #"));
            }
            levels.push(level(part).ok_or_else(|| {
                wrong("+, # and {column} must each be a whole level, between two slashes")
            })?);
        }
        let pattern = Self {
            filter: format!("{share}{}", filter(&levels)),
            levels,
        };
        let mut names: Vec<&Name> = pattern.columns().collect();
        names.iter().try_for_each(|name| check_column(name))?;
        names.sort_unstable();
        if names.windows(2).any(|pair| pair.first() == pair.last()) {
            return Err(wrong("it names a column twice"));
        }
        Ok(pattern)
    }
}

/// Returns the part of a shared subscription that names its group, and the topics; `None` if the
/// group or the topics are missing.
fn split_share(text: &str) -> Option<(&str, &str)> {
    let Some(rest) = text.strip_prefix("$share/") else {
        return Some(("", text));
    };
    let (group, topic) = rest.split_once('/')?;
    let is_name = !group.is_empty() && !group.contains(['+', '#', '{', '}']);
    let share = text.get(..text.len() - topic.len())?;
    (is_name && !topic.is_empty()).then_some((share, topic))
}

fn level(part: &str) -> Option<Level> {
    let name = part
        .strip_prefix('{')
        .and_then(|rest| rest.strip_suffix('}'));
    match (part, name) {
        ("+", _) => Some(Level::Any(None)),
        ("#", _) => Some(Level::Rest),
        (_, Some(name)) if !name.contains(['{', '}', '+', '#']) => {
            Some(Level::Any(Some(Name::from(name))))
        }
        _ if part.contains(['{', '}', '+', '#']) => None,
        _ => Some(Level::Same(part.into())),
    }
}

fn filter(levels: &[Level]) -> String {
    let texts = levels.iter().map(|level| match level {
        Level::Same(text) => &**text,
        Level::Any(_) => "+",
        Level::Rest => "#",
    });
    texts.collect::<Vec<_>>().join("/")
}

/// The most levels of a topic for which [`filters_of`] makes filters: each level doubles them.
const MAX_LEVELS: usize = 7;

/// The most filters that [`filters_of`] makes.
pub(crate) const MAX_FILTERS: usize = (2 << MAX_LEVELS) - 1 + (1 << MAX_LEVELS);

/// Returns all filters that a topic fits, without shared subscriptions; none for a topic of more
/// than [`MAX_LEVELS`] levels.
pub(crate) fn filters_of(topic: &str) -> Vec<String> {
    let mut filters = Vec::new();
    if topic.split('/').count() > MAX_LEVELS {
        return filters;
    }
    let mut begun = vec![String::new()];
    for level in topic.split('/') {
        filters.extend(begun.iter().map(|begin| format!("{begin}#")));
        let longer = begun.iter().flat_map(|begin| {
            let parts = [level, "+"];
            parts.map(|part| format!("{begin}{part}/"))
        });
        begun = longer.collect();
    }
    filters.extend(begun.iter().map(|begin| format!("{begin}#")));
    let whole = begun.iter().filter_map(|begin| begin.strip_suffix('/'));
    filters.extend(whole.map(str::to_owned));
    filters
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_has_all_filters_that_it_fits() {
        let mut filters = filters_of("a/b");
        filters.sort_unstable();
        let all = [
            "#", "+/#", "+/+", "+/+/#", "+/b", "+/b/#", "a/#", "a/+", "a/+/#", "a/b", "a/b/#",
        ];
        assert_eq!(filters, all);
        for filter in filters {
            assert!(pattern(&filter).values("a/b").is_some(), "{filter}");
        }
        assert_eq!(filters_of("a/b/c/d/e/f/g").len(), MAX_FILTERS);
        assert!(filters_of("a/b/c/d/e/f/g/h").is_empty());
    }

    fn pattern(text: &str) -> Pattern {
        text.parse().unwrap()
    }

    #[test]
    fn named_levels_become_values() {
        let named = pattern("devices/{device}/{kind}");
        assert_eq!(named.filter(), "devices/+/+");
        let values = named.values("devices/d1/heat").unwrap();
        assert_eq!(values, [Value::text("d1"), Value::text("heat")]);
        assert_eq!(named.values("devices//heat").unwrap()[0], Value::text(""));
        for other in ["devices/d1", "devices/d1/heat/x", "device/d1/heat", ""] {
            assert_eq!(named.values(other), None, "{other}");
        }
        assert_eq!(
            pattern("a/+/{b}/#").values("a/x/y"),
            Some(vec![Value::text("y")])
        );
        assert_eq!(pattern("#").values("a/b"), Some(Vec::new()));
        let shared = pattern("$share/gateways/a/{b}");
        assert_eq!(shared.filter(), "$share/gateways/a/+");
        assert_eq!(shared.values("a/1"), Some(vec![Value::text("1")]));
    }

    #[test]
    fn patterns_that_make_no_sense_are_refused() {
        for text in [
            "",
            "a/#/b",
            "a/b+",
            "a/{b",
            "a/b}",
            "a/x{b}",
            "{a}/{a}",
            "a/{}",
            "a\0",
            "$share/g",
            "$share//a",
            "$share/g/",
            "{a#}",
        ] {
            assert!(text.parse::<Pattern>().is_err(), "{text}");
        }
    }
}
