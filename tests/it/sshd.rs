//! A real OpenSSH server on loopback, with keys and files of its own.

use podtether::domain::{PodId, SshEndpoint};
use podtether::pod::ssh::{SshTarget, Tuning};
use std::fs;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long anything may take on a busy machine before a test fails.
pub const CEILING: Duration = Duration::from_secs(180);

pub struct Sshd {
    pub folder: tempfile::TempDir,
    pub port: u16,
    server: Child,
}

/// Waits until `done` holds.
pub fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < CEILING, "waited too long for {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

pub fn free_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
}

fn output(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{program} {arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

pub fn keygen(file: &Path, kind: &str, passphrase: &str) {
    let file = file.to_str().unwrap();
    output("ssh-keygen", &["-q", "-t", kind, "-N", passphrase, "-C", "test", "-f", file]);
}

/// Says aloud that a test did not run. Not by a print macro, which the test harness keeps to itself.
pub fn skip(why: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr(), "SKIPPED: {why}");
}

fn program() -> Option<PathBuf> {
    ["/usr/sbin/sshd", "/usr/local/sbin/sshd", "/opt/homebrew/sbin/sshd"]
        .into_iter()
        .map(PathBuf::from)
        .find(|path| path.exists())
}

impl Sshd {
    /// Starts one; `None`, said aloud, when there is no sshd here.
    pub fn start() -> Option<Self> {
        Self::start_with("", "")
    }

    /// Starts one with `settings` of sshd_config(5) and words `NAME=VALUE` of `environment`.
    pub fn start_with(settings: &str, environment: &str) -> Option<Self> {
        let Some(program) = program() else {
            skip("no sshd on this machine");
            return None;
        };
        // Started by root, sshd wants this folder; a package makes it at boot.
        if rustix::process::geteuid().is_root() && cfg!(target_os = "linux") {
            fs::create_dir_all("/run/sshd").unwrap();
        }
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        keygen(&at("host_ed25519"), "ed25519", "");
        keygen(&at("host_ecdsa"), "ecdsa", "");
        keygen(&at("id"), "ed25519", "");
        fs::copy(at("id.pub"), at("authorized_keys")).unwrap();
        let port = free_port();
        let config = format!(
            "{settings}\nSetEnv HOME={home} {environment}\nPort {port}\nListenAddress 127.0.0.1\nHostKey {host}\nPidFile none\nStrictModes no\nUsePAM no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nAuthorizedKeysFile {keys}\nPermitRootLogin yes\n",
            // Not this user's home: bash reads its start-up files, which may take long or talk.
            home = folder.path().display(),
            host = at("host_ed25519").display(),
            keys = at("authorized_keys").display(),
        );
        fs::write(at("config"), config).unwrap();
        let server = Self::spawn(&program, folder.path());
        let mut sshd = Self { folder, port, server };
        sshd.wait_for_port();
        Some(sshd)
    }

    fn spawn(program: &Path, folder: &Path) -> Child {
        let log = fs::File::create(folder.join("log")).unwrap();
        Command::new(program)
            .args(["-D", "-e", "-f"])
            .arg(folder.join("config"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap()
    }

    fn wait_for_port(&mut self) {
        wait_until("sshd to listen", || {
            if let Some(status) = self.server.try_wait().unwrap() {
                panic!("sshd ended: {status} {}", self.log());
            }
            TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_ok()
        });
    }

    /// Stops it and starts it again on the same port, with other settings in front.
    pub fn restart_with(&mut self, edit: impl FnOnce(String) -> String) {
        self.kill();
        let config = self.path("config");
        fs::write(&config, edit(fs::read_to_string(&config).unwrap())).unwrap();
        self.server = Self::spawn(&program().unwrap(), self.folder.path());
        self.wait_for_port();
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn log(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    pub fn target(&self) -> SshTarget {
        SshTarget {
            endpoint: SshEndpoint {
                host: "127.0.0.1".to_owned(),
                port: self.port,
                user: output("id", &["-un"]).trim().to_owned(),
            },
            pod_id: PodId("pod1".to_owned()),
            boot: "2026-07-03 13:25:25.682 +0000 UTC".to_owned(),
            known_hosts: self.path("known_hosts"),
            identity: self.path("id"),
        }
    }

    /// The processes that serve connections.
    pub fn sessions(&self) -> Vec<String> {
        descendants(&self.server.id().to_string())
    }

    /// Sends `signal` to every process that serves a connection.
    pub fn signal_sessions(&self, signal: &str) {
        for pid in self.sessions() {
            let _ = Command::new("kill").args([&format!("-{signal}"), &pid]).output();
        }
    }

    fn kill(&mut self) {
        self.signal_sessions("KILL");
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Every process below `pid`.
pub fn descendants(pid: &str) -> Vec<String> {
    let listing = output("ps", &["-A", "-o", "ppid=,pid="]);
    let pairs: Vec<(&str, &str)> = listing
        .lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            Some((words.next()?, words.next()?))
        })
        .collect();
    let mut found = vec![pid.to_owned()];
    let mut next = 0;
    while next < found.len() {
        let parent = found[next].clone();
        found
            .extend(pairs.iter().filter(|(of, _)| *of == parent).map(|(_, pid)| (*pid).to_owned()));
        next += 1;
    }
    found.split_off(1)
}

/// Settings that notice a dead peer within seconds.
pub fn impatient() -> Tuning {
    Tuning {
        connect_timeout: CEILING,
        keepalive: Duration::from_millis(500),
        write_stall: Duration::from_secs(2),
        ..Tuning::default()
    }
}
