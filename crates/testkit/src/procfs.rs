//! Facts about a process from `/proc`: memory, CPU time, children (proc(5)).

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};

/// Clock ticks a second in `/proc/PID/stat`: `USER_HZ`, which is 100 on every architecture that
/// Linux has today.
const TICKS_PER_SECOND: u64 = 100;

/// The numbers of `/proc/PID/stat` that are used here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// The parent's process id.
    pub parent: u32,
    /// `R`, `S`, `T`, `Z` ...
    pub state: char,
    /// CPU time of the process itself, user and system.
    pub own: Duration,
    /// CPU time of its children that have ended and were waited for.
    pub ended_children: Duration,
}

/// Reads `/proc/PID/stat`; `None` if there is no such process (any more).
pub fn stat(pid: u32) -> Option<Stat> {
    parse_stat(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// Parses the line. The command's name stands in parentheses and may hold anything, so the fields
/// are counted from the last one.
fn parse_stat(text: &str) -> Option<Stat> {
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    let ticks = |at: usize| fields.get(at)?.parse::<u64>().ok();
    let time = |ticks: u64| Duration::from_millis(ticks * 1000 / TICKS_PER_SECOND);
    Some(Stat {
        state: fields.first()?.chars().next()?,
        parent: fields.get(1)?.parse().ok()?,
        own: time(ticks(11)? + ticks(12)?),
        ended_children: time(ticks(13)? + ticks(14)?),
    })
}

/// Returns the processes whose parent is `parent`, at this moment.
pub fn children(parent: u32) -> Vec<u32> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok())
        .filter(|pid| stat(*pid).is_some_and(|s| s.parent == parent))
        .collect()
}

/// True while the process runs; a zombie that nobody has waited for has ended.
pub fn is_running(pid: u32) -> bool {
    stat(pid).is_some_and(|s| s.state != 'Z')
}

/// True once no thread of a process runs, because it was stopped or has ended.
pub fn is_standing(pid: u32) -> bool {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return true;
    };
    let ids = threads.filter_map(|thread| thread.ok()?.file_name().to_str()?.parse::<u32>().ok());
    let mut stats = ids.filter_map(stat);
    stats.all(|stat| matches!(stat.state, 'T' | 'Z'))
}

/// CPU time of one process, user and system, without children.
///
/// # Errors
/// There is no such process.
pub fn cpu_time(pid: u32) -> Result<Duration> {
    stat(pid)
        .map(|s| s.own)
        .with_context(|| format!("process {pid} is gone"))
}

/// CPU time of a process of one thread, to the microsecond. [`stat`] counts whole ticks, which is
/// next to nothing for a process that has had few: a thousand of them together may have had
/// seconds. `None` if there is no such process, or a kernel that does not count so.
pub fn exact_cpu_time(pid: u32) -> Option<Duration> {
    let text = fs::read_to_string(format!("/proc/{pid}/schedstat")).ok()?;
    let nanoseconds = text.split_ascii_whitespace().next()?.parse().ok()?;
    Some(Duration::from_nanos(nanoseconds))
}

/// CPU time of the calling thread, user and system, in steps of 10 ms.
///
/// # Errors
/// There is no `/proc`.
pub fn thread_cpu_time() -> Result<Duration> {
    let text = fs::read_to_string("/proc/thread-self/stat").context("/proc/thread-self/stat")?;
    let stat = parse_stat(&text).context("/proc/thread-self/stat has another form")?;
    Ok(stat.own)
}

/// Resident memory in bytes (`VmRSS`).
///
/// # Errors
/// There is no such process.
pub fn resident_bytes(pid: u32) -> Result<u64> {
    status_kib(pid, "VmRSS:").map(|kib| kib * 1024)
}

/// Lets this process, and those that it starts, have as many open files as the system allows it.
///
/// # Errors
/// The system refuses.
pub fn raise_open_files() -> Result<u64> {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE)?;
    setrlimit(Resource::RLIMIT_NOFILE, most, most)?;
    Ok(most)
}

/// Returns the highest resident memory so far in bytes (`VmHWM`).
///
/// # Errors
/// There is no such process.
pub fn peak_resident_bytes(pid: u32) -> Result<u64> {
    status_kib(pid, "VmHWM:").map(|kib| kib * 1024)
}

fn status_kib(pid: u32, field: &str) -> Result<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/status"))
        .with_context(|| format!("process {pid} is gone"))?;
    text.lines()
        .find_map(|line| {
            line.strip_prefix(field)?
                .split_ascii_whitespace()
                .next()?
                .parse()
                .ok()
        })
        .with_context(|| format!("/proc/{pid}/status has no {field}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_spaces_and_parentheses_does_not_shift_the_fields() {
        let text =
            "7 (a b) c) T 5 7 7 0 -1 4194304 100 0 0 0 150 50 30 20 20 0 1 0 12345 1000 10 0";
        assert_eq!(
            parse_stat(text),
            Some(Stat {
                parent: 5,
                state: 'T',
                own: Duration::from_secs(2),
                ended_children: Duration::from_millis(500),
            })
        );
    }

    #[test]
    fn reads_this_process() {
        let me = std::process::id();
        assert!(is_running(me));
        assert!(resident_bytes(me).unwrap() > 100_000);
        assert!(peak_resident_bytes(me).unwrap() >= resident_bytes(me).unwrap() / 2);
        assert!(exact_cpu_time(me).is_none_or(|time| !time.is_zero()));
        let mut child = std::process::Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        assert!(children(me).contains(&child.id()));
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(!is_running(child.id()));
    }
}
