//! Many vehicles supervised at once on one laptop: CPU time and memory of each `podtether supervise`, against
//! the usual script, a shell for each vehicle that asks over `ssh` every 45 s whether its job has ended. Both on
//! the local cloud, whose own cost is not counted; measured from /proc, so on Linux only.
//!
//! `cargo bench --bench fleet -- [vehicles [seconds]]`; by default 200 vehicles and 90 s for each way. The
//! seconds are rounded up to whole intervals of 45.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    missing_docs,
    reason = "a bench"
)]

mod rig;

use podtether::ops::Tether;
use rig::{Rig, vehicle, wait_until};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const INTERVAL: u64 = 45;
/// How many pods are started at once, and how many runs.
const AT_ONCE: usize = 8;

fn main() {
    if !cfg!(target_os = "linux") {
        println!("skipped: CPU time and memory are read from /proc, which this system has not");
        return;
    }
    let numbers: Vec<u64> = std::env::args().skip(1).filter_map(|word| word.parse().ok()).collect();
    let vehicles = usize::try_from(numbers.first().copied().unwrap_or(200).max(1)).unwrap();
    let window = numbers.get(1).copied().unwrap_or(90).max(1).div_ceil(INTERVAL) * INTERVAL;
    let window = Duration::from_secs(window);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let rig = Rig::start(vehicles);
    let start = Instant::now();
    let pods = runtime.block_on(async { pods(&rig, &rig.tether().await, vehicles).await });
    println!("{vehicles} pods run after {:.0} s", start.elapsed().as_secs_f64());

    let mut loops: Vec<Child> = pods.iter().map(|(_, address)| polling(&rig, address)).collect();
    // Half an interval later, so that each window holds as many polls as it is long.
    std::thread::sleep(Duration::from_secs(INTERVAL) / 2);
    let peers = cost(&loops, window);
    for child in &mut loops {
        let _ = child.kill();
        let _ = child.wait();
    }

    let start = Instant::now();
    let mut runs: Vec<(Child, std::path::PathBuf)> = Vec::new();
    for number in 0..vehicles {
        runs.push(supervising(&rig, number));
        // A launch takes its turn at the journal; a laptop starts them one by one as well.
        if runs.len().is_multiple_of(AT_ONCE) || number + 1 == vehicles {
            for (child, said) in &mut runs {
                wait_until("a launch", || {
                    let text = fs::read_to_string(&*said).unwrap_or_default();
                    assert!(child.try_wait().unwrap().is_none(), "a run has ended: {text}");
                    text.contains("launched:")
                });
            }
        }
    }
    println!("{vehicles} jobs are supervised after {:.0} s", start.elapsed().as_secs_f64());
    let children: Vec<Child> = runs.into_iter().map(|(child, _)| child).collect();
    let ours = cost(&children, window);

    let start = Instant::now();
    for volume in fs::read_dir(rig.path("cloud/volumes")).unwrap() {
        fs::write(volume.unwrap().path().join("go"), "").unwrap();
    }
    let codes: Vec<i32> =
        children.into_iter().map(|mut child| child.wait().unwrap().code().unwrap_or(-1)).collect();
    let good = codes.iter().filter(|code| **code == 0).count();
    let stopped = pods.iter().filter(|(pod, _)| rig.stop_accepted(pod).is_some()).count();
    println!(
        "all jobs end at once: {good} of {vehicles} runs exit with 0, {stopped} pods stopped, after {:.0} s",
        start.elapsed().as_secs_f64()
    );
    println!("per vehicle, over {} s of nothing happening", window.as_secs());
    println!("{:<34} {:>12} {:>10} {:>10}", "", "CPU ms/min", "PSS MiB", "peak RSS");
    for (name, cost) in [("podtether supervise", &ours), ("bash, sleep 45 and ssh", &peers)] {
        let [cpu, pss, peak] = cost.of_each(vehicles, window);
        println!("{name:<34} {cpu:>12.1} {pss:>10.1} {peak:>10.1}");
    }
    let ([cpu, pss, _], [other, theirs, _]) =
        (ours.of_each(vehicles, window), peers.of_each(vehicles, window));
    println!("{:<34} {:>12.2} {:>10.2}", "ratio", cpu / other, pss / theirs);
}

async fn pods(rig: &Rig, tether: &Tether, vehicles: usize) -> Vec<(String, String)> {
    let mut pods = Vec::new();
    for first in (0..vehicles).step_by(AT_ONCE) {
        let names: Vec<String> = (first..vehicles.min(first + AT_ONCE)).map(vehicle).collect();
        let started = names.iter().map(|name| rig.running(tether, name));
        pods.extend(futures_util::future::join_all(started).await);
    }
    pods
}

/// The usual script, without its capture and its stop.
fn polling(rig: &Rig, address: &str) -> Child {
    let script = format!(
        "while sleep {INTERVAL}; do ssh \"$@\" 'cat /workspace/jobs/none/exit_code' 2>/dev/null && break; done"
    );
    Command::new("bash")
        .args(["-c", &script, "poll"])
        .args(rig.ssh_words(address))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

fn supervising(rig: &Rig, number: usize) -> (Child, std::path::PathBuf) {
    let said = rig.path(&format!("said-{number}"));
    let vehicle = vehicle(number);
    let words = [
        "supervise",
        "--vehicle",
        &vehicle,
        "--job-name",
        "fleet",
        "--command",
        "until [ -e go ]; do sleep 1; done",
        "--sync-subdir",
        "none",
    ];
    (rig.command(&words).stderr(File::create(&said).unwrap()).spawn().unwrap(), said)
}

/// What processes and everything below them cost.
struct Cost {
    cpu: Duration,
    pss_kib: u64,
    peak_kib: u64,
}

impl Cost {
    /// CPU milliseconds in a minute, proportional and peak resident memory in MiB.
    #[expect(clippy::cast_precision_loss, reason = "a figure of a bench")]
    fn of_each(&self, vehicles: usize, window: Duration) -> [f64; 3] {
        let each = vehicles as f64;
        let minutes = window.as_secs_f64() / 60.0;
        let mib = |kib: u64| kib as f64 / 1024.0 / each;
        [self.cpu.as_secs_f64() * 1e3 / minutes / each, mib(self.pss_kib), mib(self.peak_kib)]
    }
}

fn cost(children: &[Child], window: Duration) -> Cost {
    let before: Duration = children.iter().map(cpu).sum();
    std::thread::sleep(window);
    let after: Duration = children.iter().map(cpu).sum();
    let below = below();
    let (mut pss_kib, mut peak_kib) = (0, 0);
    for child in children {
        let mut all = vec![child.id()];
        while let Some(pid) = all.pop() {
            all.extend(below.get(&pid).into_iter().flatten());
            pss_kib += kib(pid, "smaps_rollup", "Pss:");
            peak_kib += kib(pid, "status", "VmHWM:");
        }
    }
    Cost { cpu: after.saturating_sub(before), pss_kib, peak_kib }
}

/// Of a process and its children that have ended (proc_pid_stat(5), fields 14 to 17), in clock ticks of 10 ms.
fn cpu(child: &Child) -> Duration {
    let text = fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap_or_default();
    let fields = text.rsplit_once(") ").map_or("", |(_, rest)| rest);
    let ticks = fields.split(' ').skip(11).take(4).filter_map(|field| field.parse::<u64>().ok());
    Duration::from_millis(ticks.sum::<u64>() * 10)
}

/// The children of every process.
fn below() -> BTreeMap<u32, Vec<u32>> {
    let mut below: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse::<u32>() else { continue };
        let text = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let fields = text.rsplit_once(") ").map_or("", |(_, rest)| rest);
        let parent = fields.split(' ').nth(1).and_then(|field| field.parse().ok());
        if let Some(parent) = parent {
            below.entry(parent).or_default().push(pid);
        }
    }
    below
}

fn kib(pid: u32, file: &str, key: &str) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(key));
    line.and_then(|line| line.trim().split(' ').next()?.parse().ok()).unwrap_or(0)
}
