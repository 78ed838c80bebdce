//! The processes that a server has started, as `/proc` tells.

use std::fs;

use nix::unistd::Pid;

/// The children of `parent`. Stop it first, or it may have more of them at once.
pub(crate) fn children(parent: Pid) -> Vec<Pid> {
    let Ok(processes) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    processes
        .flatten()
        .filter_map(|entry| Some(Pid::from_raw(entry.file_name().to_str()?.parse().ok()?)))
        .filter(|pid| state(*pid).is_some_and(|(_, its_parent)| its_parent == parent))
        .collect()
}

/// Whether the process holds nothing any more: it is gone, or waits for its parent to notice.
pub(crate) fn is_gone(pid: Pid) -> bool {
    state(pid).is_none_or(|(state, _)| state == "Z")
}

/// The state and the parent of a process: the fields behind its name, which may hold anything.
fn state(pid: Pid) -> Option<(String, Pid)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    let state = fields.next()?.to_owned();
    Some((state, Pid::from_raw(fields.next()?.parse().ok()?)))
}
