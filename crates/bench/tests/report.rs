//! The pages and summaries of runs against their raw figures: the numbers are those of `raw.csv`,
//! and each dot stands where its number belongs. All is computed here once more, from the files
//! alone.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "helpers of tests may panic as tests may"
)]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use windrow_bench::figures::Run;

/// The values of each metric, by arm.
type Raw = BTreeMap<String, BTreeMap<String, Vec<f64>>>;

fn raw(folder: &Path) -> Raw {
    let mut raw = Raw::new();
    let mut reader = csv::Reader::from_path(folder.join("raw.csv")).unwrap();
    for row in reader.records() {
        let row = row.unwrap();
        let arms = raw.entry(row[2].to_owned()).or_default();
        let values = arms.entry(row[1].to_owned()).or_default();
        values.push(row[3].parse().unwrap());
    }
    raw
}

/// The smallest value, the median and the largest.
fn spread(values: &[f64]) -> [f64; 3] {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (low, high) = (sorted[0], sorted[sorted.len() - 1]);
    let middle = (sorted[(sorted.len() - 1) / 2] + sorted[sorted.len() / 2]) / 2.0;
    [low, middle, high]
}

/// What stands between two pieces of text.
fn between<'a>(text: &'a str, start: &str, end: &str) -> &'a str {
    let (_, rest) = text
        .split_once(start)
        .unwrap_or_else(|| panic!("no {start}: {text}"));
    rest.split_once(end).unwrap().0
}

fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;").replace('"', "&quot;")
}

/// A number as it is shown is at most half a step of its last digit away from the true one.
fn is_shown(text: &str, value: f64) -> bool {
    let digits = text.split_once('.').map_or(0, |(_, digits)| digits.len());
    let shown: f64 = text.parse().unwrap();
    (shown - value).abs() <= 0.5001 / 10_f64.powi(i32::try_from(digits).unwrap())
}

/// Looks at all plots of a run's page; says how many numbers it looked at.
fn check(folder: &Path) -> usize {
    let page = fs::read_to_string(folder.join("report.html")).unwrap();
    let mut checked = 0;
    for (metric, arms) in raw(folder) {
        let name = escaped(&metric);
        let plot = between(
            &page,
            &format!("<figcaption>{name}</figcaption>"),
            "</figure>",
        );
        let published: Vec<f64> = plot
            .lines()
            .filter_map(|line| line.split_once(", published "))
            .map(|(_, rest)| rest.split_once('<').unwrap().0.parse().unwrap())
            .collect();
        let all = arms.values().flatten().chain(&published);
        let (least, most) = all.fold((0.0_f64, 0.0_f64), |(low, high), value| {
            (low.min(*value), high.max(*value))
        });
        let size = if most > least { most - least } else { 1.0 };
        for (arm, values) in arms {
            let start = format!(">{}: ", escaped(&arm));
            let row = plot
                .lines()
                .find(|line| line.contains(&start))
                .unwrap_or_else(|| panic!("{arm} is missing in {metric}: {plot}"));
            let [low, middle, high] = spread(&values);
            let label = between(row, &start, "<");
            let shown: Vec<&str> = label
                .split([' ', '(', ')', ','])
                .filter(|part| part.starts_with(|c: char| c.is_ascii_digit() || c == '-'))
                .collect();
            for (text, value) in shown.iter().zip([middle, low, high]) {
                assert!(
                    is_shown(text, value),
                    "{metric}, {arm}: {label}, not {value}"
                );
            }
            let dot: f64 = between(row, "cx=\"", "\"").parse().unwrap();
            let place = 10.0 + (middle - least) / size * 340.0;
            assert!(
                (dot - place).abs() < 0.6,
                "{metric}, {arm}: {dot}, not {place}"
            );
            checked += 3;
        }
    }
    checked
}

/// Looks at the table of a run's summary; says how many numbers it looked at.
fn check_summary(folder: &Path) -> usize {
    let summary = fs::read_to_string(folder.join("summary.md")).unwrap();
    let raw = raw(folder);
    let mut lines = summary.lines().skip_while(|line| !line.starts_with("| | "));
    let cells = |line: &str| -> Vec<String> {
        let inner = line.trim_matches('|').split('|');
        inner.map(|cell| cell.trim().to_owned()).collect()
    };
    let metrics = cells(lines.next().unwrap());
    let mut checked = 0;
    for line in lines.skip(1).take_while(|line| line.starts_with('|')) {
        let row = cells(line);
        let arm = &row[0];
        for (metric, shown) in metrics.iter().zip(&row).skip(1) {
            match raw[metric].get(arm) {
                None => assert_eq!(shown, "", "{arm}, {metric}"),
                Some(values) => {
                    let [_, middle, _] = spread(values);
                    assert!(
                        is_shown(shown, middle),
                        "{arm}, {metric}: {shown}, not {middle}"
                    );
                    checked += 1;
                }
            }
        }
    }
    checked
}

#[test]
fn a_page_shows_the_medians_of_the_raw_figures_and_their_spread() {
    let root = tempfile::tempdir().unwrap();
    let mut run = Run::new("demo", "A <demonstration>");
    // Any numbers, of all sizes.
    let mut seed = 1_u32;
    for round in 1..=4 {
        for (arm, size) in [("one & only", 1e-2), ("two, longer", 1.0), ("three", 1e5)] {
            for metric in ["rows/s", "p50 ms", "<odd> \"metric\""] {
                seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                run.add(round, arm, metric, f64::from(seed >> 8) / 1e7 * size);
            }
        }
    }
    run.published("three", "rows/s", 2e5);
    let folder = run.store(root.path()).unwrap();
    assert_eq!(check(&folder), 27);
    assert_eq!(check_summary(&folder), 9);
}

#[test]
fn the_pages_and_summaries_of_all_stored_runs_show_their_raw_figures() {
    let runs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../benchmarks/runs");
    for entry in fs::read_dir(runs).unwrap() {
        let folder = entry.unwrap().path();
        if folder.join("raw.csv").exists() {
            let (page, summary) = (check(&folder), check_summary(&folder));
            assert_eq!(page, summary * 3, "{}", folder.display());
        }
    }
}
