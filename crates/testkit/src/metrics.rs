//! Lists of metrics in the documentation of a module.

/// Returns how what a module says of its metrics differs from those that it registers; `None`: it
/// names each of them and no other. `source`: of the module, which names each in a row of a table;
/// `metrics`: the encoded registry.
pub fn undocumented(source: &str, metrics: &str) -> Option<String> {
    let rows = source.lines();
    let names = rows.filter_map(|row| row.strip_prefix("//! | `")?.split('`').next());
    let mut count = 0;
    for name in names {
        count += 1;
        let family = name.trim_end_matches("_total");
        if !metrics.contains(&format!("# TYPE {family} ")) {
            return Some(format!("{name} is not registered:\n{metrics}"));
        }
    }
    let registered = metrics.matches("# TYPE").count();
    (count != registered).then(|| format!("{count} are documented, {registered} registered"))
}
