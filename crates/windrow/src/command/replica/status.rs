//! `windrow replica status`: shows the state of a running gateway's replicas.

use std::process::ExitCode;

use anyhow::{Context, ensure};
use serde_json::Value;

use super::args::ReplicaStatusArgs;
use crate::command::gateway::Gateway;
use crate::output::{self, counted};

/// Requests the state and prints it. Exits with 1 if a replica is unreachable, or its log accepts
/// nothing.
pub(super) fn run(args: &ReplicaStatusArgs) -> anyhow::Result<ExitCode> {
    let gateway = Gateway::new(&args.http, args.admission.token.as_ref());
    let lanes = gateway.get("/v1/lanes")?;
    let lanes: Value = serde_json::from_str(&lanes).context("the answer is no JSON")?;
    let replicas = lanes.get("replicas").and_then(Value::as_array);
    let replicas = replicas.context("the gateway has no replicas ([[replica]])")?;
    ensure!(!replicas.is_empty(), "the gateway has no replicas");
    output::print(&match args.json {
        true => format!("{}\n", serde_json::to_string_pretty(replicas)?),
        false => replicas.iter().map(line).chain(untold(replicas)).collect(),
    })?;
    let is_well = |replica: &Value| {
        let of = |name: &str| replica.get(name).is_none_or(Value::is_null);
        of("away_seconds") && of("failed") && of("log_away")
    };
    Ok(match replicas.iter().all(is_well) {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

fn line(replica: &Value) -> String {
    let text = |name: &str| {
        replica
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let seconds = |path: &str| replica.pointer(path).and_then(Value::as_f64);
    let count = |path: &str| replica.pointer(path).and_then(Value::as_u64).unwrap_or(0);
    let mut line = format!("{} ({}): ", text("name"), text("database"));
    line.push_str(&match seconds("/away_seconds") {
        Some(away) => format!("away for {away:.0} s: {}", text("why")),
        None => text("state").to_owned(),
    });
    if replica.get("copying") == Some(&Value::Bool(true)) {
        line.push_str(", gets the rows that were there before it");
    }
    line.push_str(&match count("/lag/entries") {
        0 => "; has all".to_owned(),
        _ => {
            let (rows, behind) = (count("/lag/rows"), seconds("/lag/seconds"));
            format!("; {rows} rows behind, for {:.1} s", behind.unwrap_or(0.0))
        }
    });
    match count("/others_behind") {
        0 => {}
        others => line.push_str(&format!(
            "; {others} other gateways have not applied all of theirs"
        )),
    }
    let applied = count("/applied");
    line.push_str(&format!("; applied up to position {applied}"));
    match count("/rejected") {
        0 => {}
        rejected => {
            let counted = counted(
                rejected,
                "row became a dead letter",
                "rows became dead letters",
            );
            line.push_str(&format!("; {counted}"));
        }
    }
    if let Some(why) = replica.get("failed").and_then(Value::as_str) {
        line.push_str(&format!("; its log takes nothing more: {why}"));
    }
    if let Some(why) = replica.get("log_away").and_then(Value::as_str) {
        line.push_str(&format!("; its log is away: {why}"));
    }
    line.push('\n');
    line
}

/// Returns how many statements have reached no replica.
fn untold(replicas: &[Value]) -> Option<String> {
    let untold = replicas.first()?.get("untold")?.as_u64()?;
    (untold > 0).then(|| {
        format!("{untold} statements of SQL clients have changed rows that replicas do not get: see windrow replica check\n")
    })
}
