//! The most that a way took, what was full then, and how that is to direct clients.

use anyhow::Result;

use super::load::CapacityLoad;
use super::step::{DATABASE_CORE, OTHER_CORES, STRANGERS, Step};
use crate::figures::{Metrics, Run};
use crate::servers::gate::Way;

/// From this percentage on a core counts as full.
const FULL_PERCENT: f64 = 90.0;

/// The percentage of a core that other programs may take. The kernel's own threads are among them.
const STRANGERS_PERCENT: f64 = 20.0;

/// The end of the names of figures of the rate at which most calls were answered.
const THERE: &str = "at the most";

/// Returns the figures of a way: those of the rate at which most calls were answered.
pub(super) fn of(load: CapacityLoad, most: &Step) -> Metrics {
    let unit = load.shape().unit();
    let cpu = format!("database CPU us/{unit}");
    let mut metrics = Metrics::new()
        .with(format!("most {unit}s/s"), most.answered)
        .maybe(derived(load), most.metrics.get(&cpu).map(|us| 1e6 / us));
    let gateway = format!("gateway CPU us/{unit}");
    for name in [&cpu, &gateway, DATABASE_CORE, OTHER_CORES, STRANGERS] {
        metrics = metrics.maybe(format!("{name} {THERE}"), most.metrics.get(name));
    }
    metrics
}

/// The name of what a core would take if it did nothing else, by the database's CPU time a call.
fn derived(load: CapacityLoad) -> String {
    format!("{}s/s by the database's CPU", load.shape().unit())
}

/// Says what a way took beside direct clients, and what was full.
///
/// # Errors
/// The way was not measured.
pub(super) fn conclude(run: &mut Run, load: CapacityLoad, way: Way) -> Result<()> {
    let (arm, unit) = (load.arm(way), load.shape().unit());
    // Nobody writes directly over HTTP.
    let baseline = match load {
        CapacityLoad::Http => CapacityLoad::Single,
        other => other,
    };
    let direct = baseline.arm(Way::Direct);
    let times = |metric: &str| -> Result<(f64, String)> {
        let value = run.median(&arm, metric)?;
        let said = match run.median(&direct, metric) {
            Ok(direct) if way != Way::Direct => format!(", {:.1} times direct", value / direct),
            _ => String::new(),
        };
        Ok((value, said))
    };
    let core = |name| run.median(&arm, &format!("{name} {THERE}"));
    let (database, others) = (core(DATABASE_CORE)?, core(OTHER_CORES)?);
    let full = match (database >= FULL_PERCENT, others >= FULL_PERCENT) {
        (true, _) => "the database's core was full",
        (_, true) => "the other cores were full first: a lower bound",
        _ => "no core was full",
    };
    let (most, than) = times(&format!("most {unit}s/s"))?;
    let mut text = format!(
        "{arm}: {most:.0} {unit}s/s{than}; {full} (database {database:.0} %, others {others:.0} %)"
    );
    // The clock of a short measurement may not have moved.
    if let Ok((derived, than)) = times(&derived(load))
        && derived.is_finite()
    {
        text.push_str(&format!(
            "; by the database's CPU time one core takes {derived:.0}{than}"
        ));
    }
    let strangers = core(STRANGERS)?;
    if strangers > STRANGERS_PERCENT {
        text.push_str(&format!(
            "; other programs took {strangers:.0} % of a core, so it is no figure to report"
        ));
    }
    run.remark(text);
    Ok(())
}
