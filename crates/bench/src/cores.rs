//! One core for a database, and the other cores for everything else.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

/// The division of the cores. This process may use all of them again when it is dropped.
#[derive(Debug)]
pub struct Cores {
    database: usize,
    others: Vec<usize>,
}

/// Linux counts hundredths of a second.
const MS_PER_TICK: u64 = 10;

impl Cores {
    /// Moves processes to the first core that this process may use, and this process with
    /// everything that it starts from now on to the others.
    ///
    /// # Errors
    /// There is one core only, or no `taskset` (package util-linux).
    pub fn divide(database: &[u32]) -> Result<Self> {
        let status = fs::read_to_string("/proc/self/status")?;
        let list = status
            .lines()
            .find_map(|line| line.strip_prefix("Cpus_allowed_list:"))
            .context("/proc/self/status names no cores")?;
        let mut others = numbers(list.trim())?;
        ensure!(
            others.len() > 1,
            "this experiment needs two cores, and may use {list}"
        );
        let cores = Self {
            database: others.remove(0),
            others,
        };
        for pid in database {
            pin(*pid, &[cores.database])?;
        }
        pin(std::process::id(), &cores.others)?;
        Ok(cores)
    }

    /// Returns the number of cores that the database does not have.
    pub fn others(&self) -> usize {
        self.others.len()
    }

    /// Reads how long all of these cores were busy since the machine started.
    ///
    /// # Errors
    /// There is no `/proc/stat`.
    pub fn busy(&self) -> Result<Duration> {
        let text = fs::read_to_string("/proc/stat")?;
        let all = self.others.iter().chain([&self.database]);
        let ticks = all.map(|core| busy(&text, *core).context("/proc/stat has another form"));
        let ticks = ticks.sum::<Result<u64>>()?;
        Ok(Duration::from_millis(ticks * MS_PER_TICK))
    }
}

impl Drop for Cores {
    fn drop(&mut self) {
        self.others.push(self.database);
        // Only a later measurement of this process would notice.
        pin(std::process::id(), &self.others).ok();
    }
}

/// Lets all threads of a process run on these cores only.
fn pin(pid: u32, cores: &[usize]) -> Result<()> {
    let list: Vec<_> = cores.iter().map(usize::to_string).collect();
    let done = Command::new("taskset")
        .args(["--all-tasks", "--cpu-list", "--pid", &list.join(",")])
        .arg(pid.to_string())
        .stdout(Stdio::null())
        .status()
        .context("this experiment needs taskset (package util-linux)")?;
    ensure!(done.success(), "taskset cannot move process {pid}");
    Ok(())
}

/// Reads a list of numbers such as `0-3,8`.
fn numbers(list: &str) -> Result<Vec<usize>> {
    let mut all = Vec::new();
    for part in list.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.parse()?, last.parse()?);
        all.extend(first..=last);
    }
    Ok(all)
}

/// Returns the ticks that a core was busy (`proc_stat(5)`): those of all columns but the fourth,
/// fifth and eighth, which are idle, waiting for a disk, and taken by the host.
fn busy(stat: &str, core: usize) -> Option<u64> {
    let name = format!("cpu{core} ");
    let line = stat.lines().find_map(|line| line.strip_prefix(&name))?;
    let columns: Vec<u64> = line
        .split_whitespace()
        .take(8)
        .flat_map(str::parse)
        .collect();
    let [user, nice, system, _, _, interrupt, soft, _] = columns[..] else {
        return None;
    };
    Some(user + nice + system + interrupt + soft)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cores_are_read() {
        assert_eq!(numbers("0-1").unwrap(), [0, 1]);
        assert_eq!(numbers("3,8-10").unwrap(), [3, 8, 9, 10]);
        assert!(numbers("all").is_err());
    }

    #[test]
    fn a_core_is_busy_unless_it_is_idle_waits_or_is_taken_away() {
        let stat = "cpu  9 9 9 9 9 9 9 9 9 9\ncpu1 1 2 3 40 50 6 7 80 0 0\ncpu11 0\n";
        assert_eq!(busy(stat, 1), Some(19));
        assert_eq!(busy(stat, 11), None);
        assert_eq!(busy(stat, 2), None);
    }
}
