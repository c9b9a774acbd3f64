//! The page on metrics, the dashboard and the alerts, held against a scrape of the program.

use std::collections::{BTreeMap, BTreeSet};

use crate::world::{RULES, World, dashboard};

const PAGE: &str = include_str!("../../../../docs/metrics.md");

/// Parts of the program that this test does not start.
const NOT_STARTED: [&str; 2] = ["windrow_mysql_", "windrow_mqtt_"];

/// Type and labels of a metric.
type MetricForm = (String, BTreeSet<String>);

/// The page's metrics by name: each has a line "- `name{label,label}`, histogram: meaning".
fn documented() -> BTreeMap<String, MetricForm> {
    let lines = PAGE
        .lines()
        .filter_map(|line| line.strip_prefix("- `windrow_"));
    let line = |line: &str| {
        let (form, meaning) = line.split_once(": ").unwrap();
        let (full, mark) = form.split_once('`').unwrap();
        let (name, labels) = full.split_once('{').unwrap_or((full, ""));
        let labels = labels.trim_end_matches('}').split(',');
        let labels = labels.filter(|label| !label.is_empty()).map(str::to_owned);
        let kind = match mark {
            ", histogram" => "histogram",
            "" if name.ends_with("_total") => "counter",
            "" => "gauge",
            mark => panic!("{name} is marked {mark:?}"),
        };
        assert!(!meaning.is_empty(), "{name} is not explained");
        (
            format!("windrow_{name}"),
            (kind.to_owned(), labels.collect()),
        )
    };
    let mut found: BTreeMap<_, _> = lines.map(line).collect();
    found.retain(|name, _| !NOT_STARTED.iter().any(|part| name.starts_with(part)));
    found
}

/// The names of labels in a line of a scrape.
fn labels(line: &str) -> BTreeSet<String> {
    let inside = line.split_once('{').map_or("", |(_, rest)| rest);
    let pieces = inside.split("=\"").map(|piece| {
        let start = piece.rfind([',', '{']).map_or(0, |at| at + 1);
        piece[start..].to_owned()
    });
    let mut names: Vec<String> = pieces.collect();
    // What stands behind the last one is its value.
    names.pop();
    names.into_iter().filter(|name| name != "le").collect()
}

/// What a scrape says.
fn scraped(text: &str) -> BTreeMap<String, MetricForm> {
    let mut found = BTreeMap::new();
    for line in text.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let (name, kind) = line.split_once(' ').unwrap();
        let (full, sample) = match kind {
            "counter" => (format!("{name}_total"), format!("{name}_total")),
            "histogram" => (name.to_owned(), format!("{name}_count")),
            _ => (name.to_owned(), name.to_owned()),
        };
        let is_sample = |line: &&str| {
            let rest = line.strip_prefix(&*sample);
            rest.is_some_and(|rest| rest.starts_with(['{', ' ']))
        };
        let line = text.lines().find(is_sample);
        let line = line.unwrap_or_else(|| panic!("{full} has no series"));
        found.insert(full, (kind.to_owned(), labels(line)));
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_is_what_a_scrape_says() {
    let world = World::start();
    world.use_all(1).await;
    // The dead letters are counted by a task of their own.
    let mut text = world.metrics().await;
    while !text.contains("windrow_dead_letters ") {
        text = world.metrics().await;
    }
    assert_eq!(scraped(&text), documented());
    assert!(!text.contains("status=\"1xx\"") && !text.contains("status=\"3xx\""));
}

#[test]
fn names_follow_the_conventions() {
    for (name, (kind, _)) in documented() {
        let plain = name.strip_prefix("windrow_").unwrap();
        let good = |char: char| char.is_ascii_lowercase() || char == '_';
        assert!(plain.chars().all(good), "{name}");
        assert_eq!(kind == "counter", name.ends_with("_total"), "{name}");
        for unit in ["_ms", "_milliseconds", "_kb", "_mib", "_percent"] {
            assert!(!name.ends_with(unit), "{name}");
        }
    }
}

/// The names of metrics in a query.
fn names(query: &str) -> BTreeSet<&str> {
    let is_part = |char: char| char.is_ascii_alphanumeric() || char == '_';
    let words = query.split(|char| !is_part(char));
    words.filter(|word| word.starts_with("windrow_")).collect()
}

#[test]
fn queries_name_metrics_that_are_documented() {
    let mut known = BTreeSet::new();
    for (name, (kind, _)) in documented() {
        if kind == "histogram" {
            known.extend(["bucket", "sum", "count"].map(|part| format!("{name}_{part}")));
        } else {
            known.insert(name);
        }
    }
    let queries = dashboard().into_iter().map(|(_, query)| query);
    let asked = PAGE.lines().filter(|line| line.contains("rate("));
    let texts = queries
        .chain(asked.map(str::to_owned))
        .chain([RULES.to_owned()]);
    for text in texts {
        for name in names(&text) {
            assert!(known.contains(name), "{name} in {text}");
        }
    }
}
