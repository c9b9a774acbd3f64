//! No module of a crate imports one that imports it, directly or by way of others: whoever reads a
//! crate follows one direction. A module is a file. It imports another by `use` or by a path; a
//! name that a module passes on (`pub use`) is followed to where it is defined, and is no import of
//! the module that passes it on. Tests do not count.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "helpers of tests may panic as tests may"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use windrow_testkit::tree;

/// The names from the root of a crate to a module, or to what it defines.
type Names = Vec<String>;

/// A `use`: the names of its path, and by which name the module knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Import {
    path: Names,
    alias: String,
    /// Others may import it from here.
    passed_on: bool,
}

/// A file of a crate.
#[derive(Default)]
struct Module {
    imports: Vec<Import>,
    /// What stands outside of its `use` declarations.
    body: String,
}

type Modules = BTreeMap<Names, Module>;

/// Comments, texts and tests left out.
fn code_of(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
    let text = text.replace("'\"'", "' '").replace("'\\\"'", "' '");
    let (mut code, mut rest) = (String::new(), text.as_str());
    while let Some(at) = rest.find(['"', '/']) {
        let (before, from) = rest.split_at(at);
        code.push_str(before);
        rest = if from.starts_with("//") {
            from.find('\n').map_or("", |end| &from[end..])
        } else if let Some(text) = from.strip_prefix('"') {
            behind_text(text)
        } else {
            &from[1..]
        };
    }
    code.push_str(rest);
    code
}

/// What stands behind a text whose first quote is taken off.
fn behind_text(text: &str) -> &str {
    let mut escaped = false;
    let end = text.find(|c| {
        let is_end = c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
        is_end
    });
    end.map_or("", |end| &text[end + 1..])
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The paths in a text, longer than one name.
fn paths(body: &str) -> Vec<Names> {
    let mut found = Vec::new();
    for piece in body.split(|c: char| !is_word(c) && c != ':') {
        let names: Names = piece.split("::").map(str::to_owned).collect();
        if names.len() > 1 && !names.iter().any(|name| name.contains(':')) {
            found.push(names.into_iter().filter(|name| !name.is_empty()).collect());
        }
    }
    found
}

/// The paths of a `use` declaration.
fn imports(tree: &str, passed_on: bool, before: &[String], found: &mut Vec<Import>) {
    let tree = tree.trim();
    let Some((front, inner)) = tree.split_once('{') else {
        let (path, alias) = match tree.split_once(" as ") {
            Some((path, alias)) => (path, Some(alias.trim().to_owned())),
            None => (tree, None),
        };
        let names = path.split("::").map(|name| name.trim().to_owned());
        let mut path: Names = before.iter().cloned().chain(names).collect();
        path.retain(|name| !name.is_empty());
        if path.len() > 1 && path.last().is_some_and(|name| name == "self") {
            path.pop();
        }
        let Some(last) = path.last().cloned() else {
            return;
        };
        let alias = alias.unwrap_or(last);
        return found.push(Import {
            path,
            alias,
            passed_on,
        });
    };
    let names = front.split("::").map(|name| name.trim().to_owned());
    let before: Names = before
        .iter()
        .cloned()
        .chain(names.filter(|n| !n.is_empty()))
        .collect();
    let inner = &inner[..inner.rfind('}').unwrap_or(inner.len())];
    let (mut depth, mut start) = (0_usize, 0);
    for (at, c) in inner.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                imports(&inner[start..at], passed_on, &before, found);
                start = at + 1;
            }
            _ => {}
        }
    }
    imports(&inner[start..], passed_on, &before, found);
}

fn module_of(text: &str) -> Module {
    let mut module = Module::default();
    let code = code_of(text);
    let mut rest = code.lines();
    while let Some(line) = rest.next() {
        let (front, tree) = line.trim().split_once("use ").unwrap_or(("-", ""));
        let front = front.trim();
        let passed_on = front == "pub" || front.starts_with("pub(") && front.ends_with(')');
        if !front.is_empty() && !passed_on {
            module.body.push_str(line);
            module.body.push('\n');
            continue;
        }
        let mut tree = tree.to_owned();
        while !tree.contains(';') {
            let Some(line) = rest.next() else { break };
            tree.push_str(line);
        }
        let tree = tree.split(';').next().unwrap();
        imports(tree, passed_on, &[], &mut module.imports);
    }
    module
}

fn is_test(name: &str) -> bool {
    name == "tests" || name.ends_with("_tests")
}

/// All modules of a crate, by its folder `src`.
fn modules(src: &Path) -> Modules {
    let (mut folders, mut found) = (vec![(src.to_owned(), Names::new())], Modules::new());
    while let Some((folder, names)) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            let mut names = names.clone();
            if path.is_dir() {
                names.push(name);
                folders.push((path, names));
            } else if path.extension().is_some_and(|e| e == "rs") {
                if !["lib", "main", "mod"].contains(&name.as_str()) {
                    names.push(name);
                }
                if !names.iter().any(|name| is_test(name)) {
                    found.insert(names, module_of(&fs::read_to_string(&path).unwrap()));
                }
            }
        }
    }
    found
}

/// A path from the root of the crate; `None`: it leads to another one.
fn absolute(all: &Modules, from: &[String], path: &[String]) -> Option<Names> {
    let (first, rest) = path.split_first()?;
    match first.as_str() {
        "crate" => Some(rest.to_vec()),
        "self" => Some([from, rest].concat()),
        "super" => {
            let (_, up) = from.split_last()?;
            match rest.first() {
                Some(next) if next == "super" => absolute(all, up, rest),
                _ => Some([up, rest].concat()),
            }
        }
        _ => {
            let child = [from, &path[..1]].concat();
            all.contains_key(&child).then(|| [from, path].concat())
        }
    }
}

/// The module that defines what a path names.
fn resolve(all: &Modules, from: &[String], path: &[String], left: usize) -> Option<Names> {
    let path = absolute(all, from, path)?;
    let known = (0..=path.len())
        .rev()
        .find(|end| all.contains_key(&path[..*end]))?;
    let (module, rest) = path.split_at(known);
    let passed_on = rest.first().and_then(|name| {
        let mut imports = all[module].imports.iter();
        imports.find(|import| import.passed_on && import.alias == *name)
    });
    match passed_on {
        Some(import) if left > 0 => {
            let further = [&import.path[..], &rest[1..]].concat();
            absolute(all, module, &further)?;
            resolve(all, module, &further, left - 1)
        }
        _ => Some(module.to_vec()),
    }
}

/// The modules that a module imports.
fn arrows(all: &Modules, from: &Names) -> BTreeSet<Names> {
    const STEPS: usize = 8;
    let module = &all[from];
    let uses = |name: &str| module.body.split(|c| !is_word(c)).any(|word| word == name);
    let mut targets = BTreeSet::new();
    for import in &module.imports {
        if !import.passed_on || uses(&import.alias) {
            targets.extend(resolve(all, from, &import.path, STEPS));
        }
    }
    for path in paths(&module.body) {
        let known = module.imports.iter().find(|import| import.alias == path[0]);
        let path = known.map_or(path.clone(), |import| {
            [&import.path[..], &path[1..]].concat()
        });
        targets.extend(resolve(all, from, &path, STEPS));
    }
    targets.remove(from);
    targets
}

/// All that can be reached from a module.
fn reach(arrows: &BTreeMap<Names, BTreeSet<Names>>, from: &Names) -> BTreeSet<Names> {
    let (mut open, mut seen) = (vec![from], BTreeSet::new());
    while let Some(next) = open.pop() {
        for to in &arrows[next] {
            if seen.insert(to.clone()) {
                open.push(to);
            }
        }
    }
    seen
}

/// The modules that reach themselves.
fn circles(all: &Modules) -> Vec<String> {
    let arrows = all
        .keys()
        .map(|from| (from.clone(), arrows(all, from)))
        .collect();
    let round = all
        .keys()
        .filter(|from| reach(&arrows, from).contains(*from));
    round.map(|names| names.join("::")).collect()
}

/// Returns the folders and files of one folder that import each other in a circle, taking each
/// folder as a whole, as `folder: {names}`.
fn folder_circles(all: &Modules) -> Vec<String> {
    let mut by_folder = BTreeMap::<Names, BTreeMap<Names, BTreeSet<Names>>>::new();
    for from in all.keys() {
        for to in arrows(all, from) {
            let shared = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
            // A module that imports a part of its own folder, or is imported by one, is that
            // folder's head: files are looked at by themselves elsewhere.
            if shared < from.len() && shared < to.len() {
                let arrows = by_folder.entry(from[..shared].to_vec()).or_default();
                let target = to[..=shared].to_vec();
                arrows.entry(target.clone()).or_default();
                let targets = arrows.entry(from[..=shared].to_vec()).or_default();
                targets.insert(target);
            }
        }
    }
    let mut found = Vec::new();
    for (folder, arrows) in by_folder {
        let round = arrows
            .keys()
            .filter(|name| reach(&arrows, name).contains(*name));
        let names: Vec<_> = round.filter_map(|name| name.last()).collect();
        if !names.is_empty() {
            found.push(format!("{}: {names:?}", folder.join("::")));
        }
    }
    found
}

/// The folders `src` of all crates.
fn crates() -> Vec<PathBuf> {
    let folders = tree::crates().unwrap();
    assert!(folders.len() > 10, "the crates are not where they were");
    folders.iter().map(|folder| folder.join("src")).collect()
}

#[test]
fn modules_import_in_one_direction() {
    let mut found = Vec::new();
    for src in crates() {
        let circles = circles(&modules(&src));
        if !circles.is_empty() {
            found.push(format!("{}: {circles:?}", src.display()));
        }
    }
    assert!(found.is_empty(), "circles: {found:#?}");
}

#[test]
fn folders_import_in_one_direction() {
    let mut found = Vec::new();
    for src in crates() {
        let circles = folder_circles(&modules(&src));
        if !circles.is_empty() {
            found.push(format!("{}: {circles:#?}", src.display()));
        }
    }
    assert!(found.is_empty(), "circles of folders: {found:#?}");
}

fn sample(files: &[(&str, &str)]) -> Vec<String> {
    let names = |path: &str| {
        path.split("::")
            .filter(|n| !n.is_empty())
            .map(str::to_owned)
            .collect()
    };
    let all = files
        .iter()
        .map(|(path, text)| (names(path), module_of(text)));
    circles(&all.collect())
}

#[test]
fn a_circle_is_found() {
    let both = [
        ("", "mod a;\nmod b;\n"),
        ("a", "use super::b::{B, C as D};\npub struct A;\n"),
        ("b", "pub struct B(crate::a::A);\n"),
    ];
    assert_eq!(sample(&both), ["a", "b"]);
    let parent = [
        ("a", "mod c;\nuse self::c::C;\nstruct A(C);\n"),
        ("a::c", "use super::A;\npub struct C;\n"),
    ];
    assert_eq!(sample(&parent), ["a", "a::c"]);
}

#[test]
fn what_is_passed_on_is_followed() {
    let passed_on = [
        ("a", "mod c;\npub use self::c::C;\npub mod d;\n"),
        ("a::c", "pub struct C;\n"),
        ("a::d", "use super::C;\nstruct D(C);\n// use crate::a::e;\n"),
    ];
    assert_eq!(sample(&passed_on), Vec::<String>::new());
}
