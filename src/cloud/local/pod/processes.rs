//! Finds and ends every process of a pod, also those that left their session.

use super::folder::{Folder, MARK};
use rustix::process::{Pid, Signal, kill_process};
use std::time::Duration;

/// How often a stop looks again for processes that were just being started.
const ROUNDS: u32 = 200;
const PAUSE: Duration = Duration::from_millis(20);

/// Kills every process of a pod and returns how many are still there after some seconds.
///
/// A process that was started with an emptied environment is found only where `groups` knows it.
pub async fn kill_all(pod_id: &str, folder: &Folder) -> usize {
    let mut left = 0;
    for _ in 0..ROUNDS {
        let found = find(pod_id, folder).await;
        left = found.len();
        if found.is_empty() {
            break;
        }
        for pid in found {
            let _ = kill_process(pid, Signal::KILL);
        }
        tokio::time::sleep(PAUSE).await;
    }
    left
}

/// Kills the wrapper of one of the pod's jobs and nothing else. `false` when there is none.
pub async fn kill_wrapper(pod_id: &str, folder: &Folder) -> bool {
    let leads = |pid: &Pid| rustix::process::getsid(Some(*pid)).is_ok_and(|leader| leader == *pid);
    let candidates = find(pod_id, folder).await.into_iter().filter(leads);
    for pid in candidates {
        let number = pid.as_raw_nonzero().to_string();
        let words = ps(&["-ww", "-o", "command=", "-p", &number]).await;
        if words.contains("/job_wrapper.sh ") {
            return kill_process(pid, Signal::KILL).is_ok();
        }
    }
    false
}

async fn find(pod_id: &str, folder: &Folder) -> Vec<Pid> {
    let mark = format!("{MARK}={pod_id}");
    let mut found = if cfg!(target_os = "linux") { marked_in_proc(&mark) } else { Vec::new() };
    if !cfg!(target_os = "linux") {
        found.extend(marked_in_ps(&ps(&["-axEww", "-o", "pid=,command="]).await, &mark));
        // macOS hides the environment of its own programs, so the groups are looked at as well.
        found.extend(grouped_in_ps(&ps(&["-ax", "-o", "pid=,ppid=,pgid=,etime="]).await, folder));
    }
    found.retain(|pid| *pid != rustix::process::getpid());
    found
}

/// Linux: processes whose environment has the mark. One that has ended and is not yet collected
/// shows no environment.
fn marked_in_proc(mark: &str) -> Vec<Pid> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    entries
        .flatten()
        .filter_map(|entry| {
            let pid = pid(entry.file_name().to_str()?)?;
            let environment = std::fs::read(entry.path().join("environ")).ok()?;
            environment.split(|byte| *byte == 0).any(|one| one == mark.as_bytes()).then_some(pid)
        })
        .collect()
}

fn marked_in_ps(listing: &str, mark: &str) -> Vec<Pid> {
    listing
        .lines()
        .filter(|line| line.split_whitespace().any(|word| word == mark))
        .filter_map(|line| pid(line.split_whitespace().next()?))
        .collect()
}

/// Members of the recorded groups, and their children. A group whose leader is younger than its record belongs to
/// somebody else by now.
fn grouped_in_ps(listing: &str, folder: &Folder) -> Vec<Pid> {
    let rows: Vec<Row> = listing.lines().filter_map(Row::read).collect();
    let Ok(records) = std::fs::read_dir(folder.groups()) else { return Vec::new() };
    let mut found = Vec::new();
    for record in records.flatten() {
        let Some(group) = record.file_name().to_str().and_then(pid) else { continue };
        let age = record.metadata().and_then(|file| file.modified()).ok();
        let age = age.and_then(|time| time.elapsed().ok()).map_or(0, |age| age.as_secs());
        let leader = rows.iter().find(|row| row.pid == group);
        if leader.is_some_and(|leader| leader.running_sec + 2 < age) {
            continue;
        }
        found.extend(rows.iter().filter(|row| row.group == group).map(|row| row.pid));
    }
    loop {
        let known = found.len();
        for row in &rows {
            if found.contains(&row.parent) && !found.contains(&row.pid) {
                found.push(row.pid);
            }
        }
        if found.len() == known {
            return found;
        }
    }
}

/// One line of `ps -o pid=,ppid=,pgid=,etime=`.
struct Row {
    pid: Pid,
    parent: Pid,
    group: Pid,
    running_sec: u64,
}

impl Row {
    fn read(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace();
        let (pid_word, parent, group) = (words.next()?, words.next()?, words.next()?);
        Some(Self {
            pid: pid(pid_word)?,
            parent: pid(parent)?,
            group: pid(group)?,
            running_sec: elapsed(words.next()?)?,
        })
    }
}

/// Seconds in `[[days-]hours:]minutes:seconds`.
fn elapsed(text: &str) -> Option<u64> {
    let (days, clock) = text.split_once('-').unwrap_or(("0", text));
    let mut seconds = 0;
    for part in clock.split(':') {
        seconds = seconds * 60 + part.parse::<u64>().ok()?;
    }
    Some(days.parse::<u64>().ok()? * 86_400 + seconds)
}

fn pid(text: &str) -> Option<Pid> {
    Pid::from_raw(text.parse().ok()?)
}

async fn ps(arguments: &[&str]) -> String {
    #[expect(clippy::disallowed_methods, reason = "ps is the only list of processes on macOS")]
    let mut command = tokio::process::Command::new("/bin/ps");
    command.args(arguments).stdin(std::process::Stdio::null());
    match command.output().await {
        Ok(output) => String::from_utf8_lossy(&output.stdout).into_owned(),
        Err(error) => {
            tracing::warn!(%error, "ps did not run");
            String::new()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elapsed_times_of_ps_are_read() {
        for (text, seconds) in [("00:07", 7), ("01:02:03", 3723), ("2-00:00:01", 172_801)] {
            assert_eq!(elapsed(text), Some(seconds), "{text}");
        }
        assert_eq!(elapsed("soon"), None);
    }

    /// A17: a group id that somebody else has by now is left alone.
    #[test]
    fn only_groups_as_old_as_their_record_are_the_pods() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::new(dir.path().to_owned());
        std::fs::create_dir(folder.groups()).unwrap();
        for (group, seconds_ago) in [("100", 60), ("200", 60)] {
            let file = std::fs::File::create(folder.groups().join(group)).unwrap();
            let time = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap()
                - Duration::from_secs(seconds_ago);
            file.set_modified(std::time::SystemTime::UNIX_EPOCH + time).unwrap();
        }
        let listing = " 100 1 100 01:00\n 101 100 100 00:10\n 150 101 150 00:09\n \
                       200 1 200 00:05\n 201 200 200 00:05\n 300 1 300 10:00\n";
        let found: Vec<i32> = grouped_in_ps(listing, &folder)
            .into_iter()
            .map(|pid| pid.as_raw_nonzero().get())
            .collect();
        assert_eq!(found, [100, 101, 150]);
    }

    #[test]
    fn a_mark_is_matched_whole() {
        let listing =
            "  7 sleep 9 PODTETHER_LOCAL_POD=local1\n 8 bash PODTETHER_LOCAL_POD=local12\n";
        let found = marked_in_ps(listing, "PODTETHER_LOCAL_POD=local1");
        assert_eq!(
            found.into_iter().map(|pid| pid.as_raw_nonzero().get()).collect::<Vec<_>>(),
            [7]
        );
    }
}
