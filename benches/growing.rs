//! Pulls of a folder that grows, as a run that is watched makes it: each round adds one checkpoint and
//! lengthens the log, then everything is pulled again. podtether's pull, with every file proven by its
//! hash, against `rsync -e ssh`, which proves nothing, in the same rounds. `cargo bench --bench growing
//! -- [MiB per checkpoint [rounds]]`; put TMPDIR on a RAM disk to measure the pull and not the disk.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    dead_code,
    missing_docs,
    reason = "a bench"
)]

#[path = "../tests/it/sshd.rs"]
mod sshd;

use podtether::pod::ssh::{PodShell, Tuning};
use podtether::pod::transfer::{PullRequest, RsyncProgram, pull};
use rand::Rng as _;
use sshd::Sshd;
use std::fs;
use std::io::Write as _;
use std::process::Command;
use std::time::{Duration, Instant};

fn main() {
    let numbers: Vec<usize> =
        std::env::args().skip(1).filter_map(|word| word.parse().ok()).collect();
    let number = |index: usize, usual| numbers.get(index).copied().unwrap_or(usual);
    let (mib, rounds) = (number(0, 32), number(1, 12));
    let Some(sshd) = Sshd::start() else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let path = std::env::var_os("PATH").unwrap();
    let rsync = runtime.block_on(RsyncProgram::probe(&path)).unwrap();
    let target = sshd.target();
    let remote = sshd.path("run");
    fs::create_dir(&remote).unwrap();
    let ssh = format!(
        "ssh -F none -p {} -i {} -o BatchMode=yes -o StrictHostKeyChecking=accept-new -o UserKnownHostsFile={}",
        target.endpoint.port,
        target.identity.display(),
        sshd.path("known_hosts_of_ssh").display()
    );
    let plain = |to: &str| {
        let status = Command::new(&rsync.path)
            .args(["-rt", "-e", &ssh])
            .arg(format!("127.0.0.1:{}/", remote.display()))
            .arg(sshd.path(to))
            .status()
            .unwrap();
        assert!(status.success());
    };
    let shell = PodShell::new(target.clone(), Tuning::default());
    let ours = |to: &str, rehash: bool| {
        let request = PullRequest {
            manifest: Some(sshd.path(&format!("{to}.jsonl"))),
            settled: Duration::ZERO,
            rehash,
            ..PullRequest::new(
                target.clone(),
                Tuning::default(),
                env!("CARGO_BIN_EXE_podtether").into(),
                Some(rsync.clone()),
                remote.display().to_string(),
                sshd.path(to),
            )
        };
        let report = runtime.block_on(pull(&request, &shell, |_| {})).unwrap();
        assert!(report.complete, "{report:?}");
    };
    let timed = |work: &dyn Fn()| {
        let start = Instant::now();
        work();
        start.elapsed().as_secs_f64()
    };
    let heads = ["round", "MiB", "rsync -e ssh", "pull", "ratio", "all hashed", "ratio"];
    println!("{}", heads.map(|head| format!("{head:>13}")).concat());
    let mut ratios = Vec::new();
    for round in 1..=rounds {
        let mut bytes = vec![0; mib << 20];
        rand::rng().fill_bytes(&mut bytes);
        fs::write(remote.join(format!("model_{round}.pt")), bytes).unwrap();
        let log = fs::OpenOptions::new().create(true).append(true).open(remote.join("out.log"));
        log.unwrap().write_all("one more line of the log\n".repeat(4_000).as_bytes()).unwrap();
        let base = timed(&|| plain("plain"));
        let pulled = timed(&|| ours("ours", false));
        let hashed = timed(&|| ours("hashed", true));
        ratios.push(pulled / base);
        println!(
            "{round:>13}{:>13}{base:>13.2}{pulled:>13.2}{:>13.2}{hashed:>13.2}{:>13.2}",
            round * mib,
            pulled / base,
            hashed / base
        );
    }
    ratios.sort_by(f64::total_cmp);
    println!("median ratio of the pull: {:.2}", ratios[ratios.len() / 2]);
}
