//! Billed idle seconds: from the last act of a job to the stop that the provider accepted. podtether's
//! supervise, which holds a connection, against a script that polls over `ssh`, pulls the job's folder with
//! `rsync -e ssh` and stops. Both on the local cloud, in turns, with real processes.
//!
//! The poller's interval is scaled: it polls every 45 s / SCALE, beginning at a random phase. What it waits for
//! is told apart from what it does then, and only the wait is scaled back: `idle at 45 s` = mean wait × SCALE
//! + what it does. The mean wait of a uniform phase is half the interval, 22.5 s at 45 s.
//!
//! `cargo bench --bench idle -- [rounds [scale]]`
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

use podtether::ops::{RunJobRequest, Tether};
use rand::RngExt as _;
use rig::{Rig, median, seconds, vehicle, wait_until};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// The job: some results, and the time of its last act in a file of its own.
const JOB: &str =
    "sleep 2; mkdir -p results; head -c 3000000 /dev/urandom >results/model.pt; date +%s%N >ended";
const INTERVAL: f64 = 45.0;

fn main() {
    let numbers: Vec<u32> = std::env::args().skip(1).filter_map(|word| word.parse().ok()).collect();
    let rounds = numbers.first().copied().unwrap_or(5).max(1);
    let scale = f64::from(numbers.get(1).copied().unwrap_or(15).max(1));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let (mut held, mut waits, mut works) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..=rounds {
        let ours = supervised(&runtime);
        let (wait, work) = polled(&runtime, INTERVAL / scale);
        println!(
            "round {round}: supervise {ours:.2} s; poller waited {wait:.2} s, then took {work:.2} s"
        );
        // The first warms the page cache.
        if round > 0 {
            held.push(ours);
            waits.push(wait);
            works.push(work);
        }
    }
    let held = median(&mut held);
    let mean = waits.iter().sum::<f64>() / f64::from(rounds);
    let work = median(&mut works);
    let measured = mean * scale + work;
    println!("billed idle seconds, from the job's last act to the accepted stop; {rounds} rounds");
    println!("{:<44} {held:>8.2} s", "podtether supervise (median)");
    println!(
        "{:<44} {measured:>8.2} s",
        format!("poll every 45 s (wait measured at 1/{scale}, scaled)")
    );
    println!("{:<44} {:>8.2} s", "poll every 45 s (mean of a uniform wait)", INTERVAL / 2.0 + work);
    println!("{:<44} {:>8.1}", "ratio, by the uniform wait", (INTERVAL / 2.0 + work) / held);
}

/// When the job did its last thing, in seconds since 1970; `None` while it has not.
fn ended(file: &Path) -> Option<f64> {
    let nanos: i64 = fs::read_to_string(file).ok()?.trim().parse().ok()?;
    Some(seconds(nanos / 1000))
}

fn supervised(runtime: &tokio::runtime::Runtime) -> f64 {
    let rig = Rig::start(1);
    let pod = runtime.block_on(async {
        let tether = rig.tether().await;
        rig.running(&tether, &vehicle(0)).await.0
    });
    let words = ["supervise", "--job-name", "idle", "--command", JOB, "--sync-subdir", "results"];
    let output = rig.command(&words).stderr(Stdio::piped()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    rig.stop_accepted(&pod).unwrap() - ended(&rig.volume().join("ended")).unwrap()
}

/// What it waited until it saw the end, and what it did then until its stop was accepted.
fn polled(runtime: &tokio::runtime::Runtime, interval: f64) -> (f64, f64) {
    let rig = Rig::start(1);
    let (pod, address, job_dir) = runtime.block_on(async {
        let tether: Tether = rig.tether().await;
        let (pod, address) = rig.running(&tether, &vehicle(0)).await;
        let request = RunJobRequest {
            name: "idle".to_owned(),
            command: JOB.to_owned(),
            ..RunJobRequest::default()
        };
        (pod, address, tether.run_job(&request).await.unwrap().job_dir)
    });
    let ssh = rig.ssh_words(&address);
    std::thread::sleep(Duration::from_secs_f64(rand::rng().random_range(0.0..interval)));
    wait_until("the poller to see the end", || {
        let asked =
            Command::new("ssh").args(&ssh).arg(format!("cat '{job_dir}/exit_code'")).output();
        let is_over = asked.unwrap().status.success();
        if !is_over {
            std::thread::sleep(Duration::from_secs_f64(interval));
        }
        is_over
    });
    let seen = seconds(chrono::Utc::now().timestamp_micros());
    let (login, options) = ssh.split_last().unwrap();
    let shell = format!("ssh {}", options.join(" "));
    let mount = job_dir.rsplit_once("/jobs/").unwrap().0;
    for folder in [job_dir.as_str(), &format!("{mount}/results")] {
        let pulled = Command::new("rsync")
            .args(["-rt", "-e", &shell, &format!("{login}:{folder}")])
            .arg(rig.path("pulled/"))
            .status();
        assert!(pulled.unwrap().success(), "{folder} of {job_dir}");
    }
    let url = format!("{}/v2/pods/{pod}/action", rig.url);
    runtime.block_on(async {
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let stop =
            client.post(url).bearer_auth(&rig.key).json(&serde_json::json!({"action": "stop"}));
        assert!(stop.send().await.unwrap().status().is_success());
    });
    let stopped = rig.stop_accepted(&pod).unwrap();
    (seen - ended(&rig.volume().join("ended")).unwrap(), stopped - seen)
}
