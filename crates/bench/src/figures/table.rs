//! Figures as text.

use std::fmt::Write as _;

use anyhow::Result;

use super::figure::Figure;

/// The median of a metric of an arm over all rounds.
pub(super) fn median(figures: &[Figure], arm: &str, metric: &str) -> Option<f64> {
    let mut values: Vec<f64> = figures
        .iter()
        .filter(|f| f.arm == arm && f.metric == metric)
        .map(|f| f.value)
        .collect();
    values.sort_unstable_by(f64::total_cmp);
    let upper = *values.get(values.len() / 2)?;
    let lower = *values.get(values.len().saturating_sub(1) / 2)?;
    Some(f64::midpoint(lower, upper))
}

/// A Markdown table: arms down, metrics across, medians in the cells.
pub(super) fn medians(figures: &[Figure]) -> String {
    let arms = distinct(figures.iter().map(|f| f.arm.as_str()));
    let metrics = distinct(figures.iter().map(|f| f.metric.as_str()));
    let mut text = format!("| | {} |\n", metrics.join(" | "));
    writeln!(text, "| --- |{}", " --- |".repeat(metrics.len())).ok();
    for arm in arms {
        write!(text, "| {arm} |").ok();
        for metric in &metrics {
            let cell = median(figures, arm, metric).map_or(String::new(), number);
            write!(text, " {cell} |").ok();
        }
        text.push('\n');
    }
    text
}

/// A Markdown table of what others have published, beside the medians of what was measured.
pub(super) fn published(figures: &[Figure], published: &[Figure]) -> String {
    if published.is_empty() {
        return String::new();
    }
    let mut text = String::from("| | | published | measured |\n| --- | --- | --- | --- |\n");
    for Figure {
        arm, metric, value, ..
    } in published
    {
        let measured = median(figures, arm, metric).map_or(String::new(), number);
        let value = number(*value);
        writeln!(text, "| {arm} | {metric} | {value} | {measured} |").ok();
    }
    text.push('\n');
    text
}

/// Each name once, in the order of their first places.
pub(super) fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut seen = Vec::new();
    for name in names {
        if !seen.contains(&name) {
            seen.push(name);
        }
    }
    seen
}

/// The values of one metric of one arm over the rounds of a run.
pub(super) struct Spread {
    pub(super) median: f64,
    pub(super) low: f64,
    pub(super) high: f64,
    pub(super) rounds: usize,
}

impl Spread {
    /// `None`: it was not measured.
    pub(super) fn of(figures: &[Figure], arm: &str, metric: &str) -> Option<Self> {
        let values = || {
            figures
                .iter()
                .filter(|f| f.arm == arm && f.metric == metric)
                .map(|f| f.value)
        };
        Some(Self {
            median: median(figures, arm, metric)?,
            low: values().fold(f64::INFINITY, f64::min),
            high: values().fold(f64::NEG_INFINITY, f64::max),
            rounds: values().count(),
        })
    }

    /// The median, with the smallest and the largest round behind it.
    pub(super) fn shown(&self) -> String {
        let [median, low, high] = [self.median, self.low, self.high].map(number);
        format!("{median} ({low} .. {high})")
    }
}

/// As many digits as mean something.
pub(super) fn number(value: f64) -> String {
    match value.abs() {
        size if size == 0.0 || size >= 1000.0 => format!("{value:.0}"),
        size if size >= 100.0 => format!("{value:.1}"),
        size if size >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// A number beside an axis: `10k`, `2.5M`.
pub(super) fn short(value: f64) -> String {
    let (value, unit) = match value.abs() {
        size if size >= 1e6 => (value / 1e6, "M"),
        size if size >= 1e3 => (value / 1e3, "k"),
        _ => (value, ""),
    };
    // At most one digit behind the point, two where there is nothing before it.
    let digits = if value.abs() < 1.0 { 100.0 } else { 10.0 };
    format!("{}{unit}", (value * digits).round() / digits)
}

/// All figures, one a line.
pub(super) fn csv(figures: &[Figure]) -> Result<String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for figure in figures {
        writer.serialize(figure)?;
    }
    Ok(String::from_utf8(writer.into_inner()?)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_of_odd_even_and_nothing() {
        let figures: Vec<_> = [4.0, 1.0, 9.0, 2.0]
            .iter()
            .map(|value| Figure {
                round: 1,
                arm: "a".into(),
                metric: "m".into(),
                value: *value,
            })
            .collect();
        assert_eq!(median(&figures[..3], "a", "m"), Some(4.0));
        assert_eq!(median(&figures, "a", "m"), Some(3.0));
        assert_eq!(median(&figures, "a", "other"), None);
    }

    #[test]
    fn numbers_are_short() {
        let shown: Vec<_> = [0.0, 0.1234, 2.71, 123.456, 81_234.5].map(number).into();
        assert_eq!(shown, ["0", "0.123", "2.71", "123.5", "81234"]);
        let beside: Vec<_> = [0.0, 0.25, 64.0, 1_000.0, 2_500_000.0].map(short).into();
        assert_eq!(beside, ["0", "0.25", "64", "1k", "2.5M"]);
    }
}
