//! How long files take: `rsync -e 'podtether transport'` against `rsync -e ssh`, and podtether's
//! whole pull with its lists and hashes. `cargo bench --bench rsync -- [MiB [files [runs]]] [PROGRAM]`; put
//! TMPDIR on a RAM disk to measure the transport and not the disk.
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
use podtether::pod::transfer::transport::{SETTINGS_ENV, TransportSettings};
use podtether::pod::transfer::{PullRequest, RsyncProgram, Words, pull};
use rand::Rng as _;
use sshd::Sshd;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

type Way<'a> = Box<dyn Fn(&Path) + 'a>;

fn main() {
    let numbers: Vec<usize> =
        std::env::args().skip(1).filter_map(|word| word.parse().ok()).collect();
    let number = |index: usize, usual| numbers.get(index).copied().unwrap_or(usual);
    let (mib, files, runs) = (number(0, 1024), number(1, 20_000), number(2, 5));
    let Some(sshd) = Sshd::start() else { return };
    let bench = Bench::new(&sshd);
    let big = sshd.path("big");
    fs::create_dir(&big).unwrap();
    write_noise(&big.join("file"), mib << 20);
    let small = sshd.path("small");
    for index in 0..files {
        let folder = small.join(format!("{:03}", index % 200));
        fs::create_dir_all(&folder).unwrap();
        write_noise(&folder.join(index.to_string()), 4096);
    }
    println!("{:<60} {:>8} {:>8}", format!("median of {runs} runs, loopback"), "s", "ratio");
    bench.compare(&format!("one file of {mib} MiB"), &big, runs);
    bench.compare(&format!("{files} files of 4 KiB"), &small, runs);
}

struct Bench<'a> {
    sshd: &'a Sshd,
    rsync: RsyncProgram,
    runtime: tokio::runtime::Runtime,
    settings: PathBuf,
    program: String,
}

impl<'a> Bench<'a> {
    fn new(sshd: &'a Sshd) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let path = std::env::var_os("PATH").unwrap();
        let rsync = runtime.block_on(RsyncProgram::probe(&path)).unwrap();
        let settings = TransportSettings {
            target: sshd.target(),
            tuning: Tuning::default().for_transfer(),
            words: Words::Plain,
            stall: sshd::CEILING,
        };
        // Another build of the program may be named, such as an earlier release.
        let named = std::env::args().find(|word| word.ends_with("podtether") && word.contains('/'));
        let program = named.unwrap_or_else(|| env!("CARGO_BIN_EXE_podtether").to_owned());
        // The transport goes only to a pinned key.
        runtime.block_on(PodShell::new(sshd.target(), Tuning::default()).connection()).unwrap();
        let path = sshd.path("transport.json");
        fs::write(&path, serde_json::to_vec(&settings).unwrap()).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        Self { sshd, rsync, runtime, settings: path, program }
    }

    fn rsync(&self, shell: &str, from: &Path, to: &Path) {
        let status = Command::new(&self.rsync.path)
            .args(["-rts", "-e", shell])
            .arg(format!("127.0.0.1:{}/", from.display()))
            .arg(to)
            .env(SETTINGS_ENV, &self.settings)
            .status()
            .unwrap();
        assert!(status.success());
    }

    fn pull(&self, from: &Path, to: &Path) {
        let tuning = Tuning::default();
        let request = PullRequest::new(
            self.sshd.target(),
            tuning.clone(),
            self.program.clone().into(),
            Some(self.rsync.clone()),
            from.display().to_string(),
            to.to_owned(),
        );
        let shell = PodShell::new(self.sshd.target(), tuning);
        let report = self.runtime.block_on(pull(&request, &shell, |_| {})).unwrap();
        assert!(report.complete, "{report:?}");
    }

    fn compare(&self, what: &str, from: &Path, runs: usize) {
        let target = self.sshd.target();
        let ssh = format!(
            "ssh -F none -p {} -i {} -o BatchMode=yes -o HostKeyAlias=pod1 -o UserKnownHostsFile={}",
            target.endpoint.port,
            target.identity.display(),
            target.known_hosts.display()
        );
        let gcm = format!("{ssh} -c aes256-gcm@openssh.com");
        let ours = format!("{} transport", self.program);
        let ways: [(&str, Way<'_>); 4] = [
            ("rsync -e 'podtether transport'", Box::new(|to| self.rsync(&ours, from, to))),
            ("rsync -e ssh", Box::new(|to| self.rsync(&ssh, from, to))),
            ("rsync -e 'ssh -c aes256-gcm'", Box::new(|to| self.rsync(&gcm, from, to))),
            ("podtether's pull, hashes compared", Box::new(|to| self.pull(from, to))),
        ];
        let mut times = vec![Vec::new(); ways.len()];
        // One run first that does not count; then in turns, so that what else the machine does
        // falls on all of them.
        for run in 0..=runs {
            for ((_, way), times) in ways.iter().zip(&mut times) {
                let to = self.sshd.path("received");
                fs::create_dir(&to).unwrap();
                let start = Instant::now();
                way(&to);
                let time = start.elapsed();
                fs::remove_dir_all(&to).unwrap();
                if run > 0 {
                    times.push(time);
                }
            }
        }
        let base = median(&mut times[0]).as_secs_f64();
        for ((name, _), times) in ways.iter().zip(&mut times) {
            let time = median(times).as_secs_f64();
            println!("{:<60} {time:>8.2} {:>8.2}", format!("{what}: {name}"), time / base);
        }
    }
}

fn write_noise(path: &Path, length: usize) {
    let mut bytes = vec![0; length];
    rand::rng().fill_bytes(&mut bytes);
    fs::write(path, bytes).unwrap();
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort();
    times[times.len() / 2]
}
