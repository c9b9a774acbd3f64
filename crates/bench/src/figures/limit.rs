//! The load generator's own limit beside what was measured with it.

use super::figure::Figure;
use super::table;

/// The metric of an arm: how many rows a second the same generator, with as many clients, brings to
/// a server that answers without doing anything.
pub const LIMIT: &str = "generator's limit rows/s";

/// The beginning of such a metric's name, before the rate that is compared with the limit.
const LIMIT_OF: &str = "generator's limit ";

/// From this share of its limit on, the generator is taken for what held an arm up.
const BOTTLENECK: f64 = 0.8;

/// Where the generator was the bottleneck, or that it was not. Empty where no limit was measured.
pub(super) fn remarks(figures: &[Figure]) -> Vec<String> {
    let arms = table::distinct(figures.iter().map(|f| f.arm.as_str()));
    let metrics = figures.iter().map(|f| f.metric.as_str());
    let limits = table::distinct(metrics.filter(|metric| metric.starts_with(LIMIT_OF)));
    let share = |arm, metric: &str| {
        let limit = table::median(figures, arm, metric)?;
        let rate = metric.strip_prefix(LIMIT_OF)?;
        Some((arm, table::median(figures, arm, rate)? / limit))
    };
    let of_arm = |arm| limits.iter().filter_map(move |metric| share(arm, metric));
    let shares: Vec<(&str, f64)> = arms.into_iter().flat_map(of_arm).collect();
    let held: Vec<String> = shares
        .iter()
        .filter(|(_, share)| *share >= BOTTLENECK)
        .map(|(arm, share)| {
            let (share, from) = (share * 100.0, BOTTLENECK * 100.0);
            format!("{arm}: the load generator was the bottleneck, at {share:.0} % of its own limit ({from:.0} % or more)")
        })
        .collect();
    let most = shares.iter().map(|(_, share)| share * 100.0);
    match most.reduce(f64::max) {
        Some(most) if held.is_empty() => vec![format!(
            "the load generator was never the bottleneck: at most {most:.0} % of its own limit"
        )],
        _ => held,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(arms: &[(&str, f64, Option<f64>)]) -> Vec<Figure> {
        let figure = |arm: &str, metric: &str, value| Figure {
            round: 1,
            arm: arm.into(),
            metric: metric.into(),
            value,
        };
        let both = |(arm, rate, limit): &(&str, f64, Option<f64>)| {
            let limit = limit.map(|limit| figure(arm, LIMIT, limit));
            std::iter::once(figure(arm, "rows/s", *rate)).chain(limit)
        };
        arms.iter().flat_map(both).collect::<Vec<_>>()
    }

    #[test]
    fn a_generator_at_its_limit_is_named() {
        let figures = measured(&[
            ("slow", 10.0, Some(100.0)),
            ("fast", 90.0, Some(100.0)),
            ("without", 900.0, None),
        ]);
        assert_eq!(
            remarks(&figures),
            [
                "fast: the load generator was the bottleneck, at 90 % of its own limit (80 % or more)"
            ]
        );
        let said = remarks(&figures[..2]);
        assert_eq!(
            said,
            ["the load generator was never the bottleneck: at most 10 % of its own limit"]
        );
        assert!(remarks(&measured(&[("without", 1.0, None)])).is_empty());
    }
}
