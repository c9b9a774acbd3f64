//! The way of a write that ARCHITECTURE.md tells has stops that exist.

use std::fs;
use std::path::Path;

/// The most stops of one walk: a reader keeps no more in mind.
const STOPS: usize = 15;

/// The file and the function of a line such as ``3. `file` `function`: what happens``.
fn stop(line: &str) -> Option<(&str, &str)> {
    let (number, rest) = line.split_once(". `")?;
    number.parse::<u32>().ok()?;
    let (file, rest) = rest.split_once("` `")?;
    let (function, _) = rest.split_once('`')?;
    Some((file, function))
}

#[test]
fn every_stop_of_the_walks_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    let (_, page) = page.split_once("## Two writes, stop by stop").unwrap();
    let (page, _) = page.split_once("\n## ").unwrap();
    let walks: Vec<Vec<_>> = page
        .split("\n\n")
        .map(|block| block.lines().filter_map(stop).collect::<Vec<_>>())
        .filter(|stops| !stops.is_empty())
        .collect();
    assert_eq!(walks.len(), 2, "a row over HTTP, and a prepared INSERT");
    for walk in walks {
        assert!(walk.len() <= STOPS, "{} stops", walk.len());
        for (file, function) in walk {
            let text = fs::read_to_string(root.join("crates").join(file));
            let text = text.unwrap_or_else(|error| panic!("{file}: {error}"));
            let names = ["(", "<"].map(|behind| format!("fn {function}{behind}"));
            let found = names.iter().any(|name| text.contains(name.as_str()));
            assert!(found, "{file} has no function {function}");
        }
    }
}
