//! What a tree of processes uses, read from `/proc`.

use crate::backend::Usage;
use std::time::Duration;

/// Every process that descends from one.
pub(super) fn descendants(pid: i32) -> Vec<i32> {
    at_least(pid, usize::MAX)
}

/// So many of the processes that descend from one, and not many more: whoever forks without end must not keep
/// anybody counting.
fn at_least(pid: i32, enough: usize) -> Vec<i32> {
    let mut found = Vec::new();
    let mut ahead = vec![pid];
    while let Some(pid) = ahead.pop() {
        if found.len() > enough {
            break;
        }
        for thread in std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
            let children = std::fs::read_to_string(thread.path().join("children")).unwrap_or_default();
            let children = children.split_whitespace().filter_map(|pid| pid.parse::<i32>().ok());
            for child in children {
                found.push(child);
                ahead.push(child);
            }
        }
    }
    found
}

/// What a process and its descendants use. A process that ends meanwhile counts for nothing. If there are more
/// than `enough` of them, that alone is found out.
pub(super) fn of_tree(pid: i32, enough: u64) -> Usage {
    let mut sum = Usage::default();
    let tree = at_least(pid, usize::try_from(enough).unwrap_or(usize::MAX));
    if tree.len() as u64 > enough {
        return Usage { processes: tree.len() as u64, ..sum };
    }
    for pid in tree {
        let one = of_process(pid);
        sum.memory += one.memory;
        sum.processes += one.processes;
        sum.cpu += one.cpu;
        sum.written += one.written;
    }
    sum
}

fn of_process(pid: i32) -> Usage {
    let read = |file: &str| std::fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
    let status = read("status");
    let field = |text: &str, name: &str| -> u64 {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
    };
    Usage {
        // Page tables can be made large without a page in them.
        memory: (field(&status, "RssAnon:") + field(&status, "RssShmem:") + field(&status, "VmPTE:")) * 1024,
        processes: field(&status, "Threads:"),
        cpu: cpu(&read("stat")),
        written: field(&read("io"), "write_bytes:"),
    }
}

/// Processor time of a process and of the children it waited for.
fn cpu(stat: &str) -> Duration {
    let Some((_, rest)) = stat.rsplit_once(')') else { return Duration::ZERO };
    let ticks: u64 = rest.split_whitespace().skip(11).take(4).filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 1000 / rustix::param::clock_ticks_per_second().max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_is_seen_with_what_it_uses() {
        let mut child = std::process::Command::new("sleep").arg("5").spawn().unwrap();
        let me = i32::try_from(std::process::id()).unwrap();
        assert!(descendants(me).contains(&i32::try_from(child.id()).unwrap()));
        assert!(of_tree(me, 100).processes >= 1);
        let alone = of_tree(me, 0);
        assert!(alone.processes > 0 && alone.memory == 0, "that there are too many is all that is found out");
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_name_with_brackets_does_not_shift_the_fields() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194304 100 0 0 0 50 25 15 10 20 0 1 0";
        assert_eq!(cpu(stat), Duration::from_millis(100 * 1000 / rustix::param::clock_ticks_per_second()));
    }
}
