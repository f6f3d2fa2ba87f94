//! How long one small command takes: podtether's warm connection against a fresh `ssh` and a
//! ControlMaster `ssh`. `cargo bench --bench ssh_exec -- [runs]`
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

use podtether::domain::RemoteCommand;
use podtether::pod::ssh::{Connection, Tuning};
use podtether::pod::{ExecLimits, Shell as _};
use sshd::Sshd;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

type Way<'a> = Box<dyn Fn() + 'a>;

fn main() {
    let runs: usize = std::env::args().filter_map(|word| word.parse().ok()).next().unwrap_or(40);
    let Some(sshd) = Sshd::start() else { return };
    let target = sshd.target();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let tuning = Tuning::default();
    let limits = ExecLimits { timeout: sshd::CEILING, stdout_bytes: 100, stderr_bytes: 100 };
    let command = RemoteCommand::new(["true"]);
    let connect = || runtime.block_on(Connection::connect(&target, &tuning)).unwrap();
    let run = |connection: &Connection| {
        assert!(runtime.block_on(connection.run(&command, limits)).unwrap().succeeded());
    };
    let warm = connect();

    let control = sshd.path("control");
    let ssh = |master: bool| {
        let mut ssh = Command::new("ssh");
        ssh.args(["-F", "none", "-p", &target.endpoint.port.to_string(), "-o", "BatchMode=yes"])
            .arg("-i")
            .arg(&target.identity)
            .args(["-o", "HostKeyAlias=pod1", "-o"])
            .arg(format!("UserKnownHostsFile={}", target.known_hosts.display()));
        if master {
            ssh.arg("-S").arg(&control);
        }
        ssh.arg(format!("{}@127.0.0.1", target.endpoint.user));
        ssh.stdin(Stdio::null());
        ssh
    };
    let succeed = |mut ssh: Command| assert!(ssh.arg("true").status().unwrap().success());
    let mut master = ssh(true).args(["-M", "-N"]).spawn().unwrap();
    sshd::wait_until("the control master", || control.exists());

    let ways: [(&str, Way<'_>); 4] = [
        ("podtether, warm connection", Box::new(|| run(&warm))),
        ("podtether, fresh connection", Box::new(|| run(&connect()))),
        ("ssh through a ControlMaster", Box::new(|| succeed(ssh(true)))),
        ("ssh, fresh", Box::new(|| succeed(ssh(false)))),
    ];
    let mut times = [const { Vec::new() }; 4];
    for (_, way) in &ways {
        way();
    }
    // In turns, so that what else the machine does falls on all of them.
    for _ in 0..runs {
        for ((_, way), times) in ways.iter().zip(&mut times) {
            let start = Instant::now();
            way();
            times.push(start.elapsed());
        }
    }
    let base = median(&mut times[0]);
    println!("`true` on loopback, median of {runs} runs");
    println!("{:<30} {:>10} {:>8}", "", "ms", "ratio");
    for ((name, _), times) in ways.iter().zip(&mut times) {
        let time = median(times);
        let ratio = time.as_secs_f64() / base.as_secs_f64();
        println!("{name:<30} {:>10.1} {ratio:>8.1}", time.as_secs_f64() * 1e3);
    }
    let _ = master.kill();
    let _ = master.wait();
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort();
    times[times.len() / 2]
}
