//! The pod's shell against a real OpenSSH server.

use crate::sshd::{CEILING, Sshd, free_port, impatient, keygen, wait_until};
use podtether::domain::RemoteCommand;
use podtether::pod::ssh::identity::public_key_text;
use podtether::pod::ssh::{Connection, PodShell, SshTarget, Tuning};
use podtether::pod::{ExecLimits, ExecOutput, ExecStatus, Shell, ShellError, ShellErrorKind};
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

const LIMITS: ExecLimits = ExecLimits { timeout: CEILING, stdout_bytes: 8000, stderr_bytes: 4000 };

fn tuning() -> Tuning {
    Tuning { connect_timeout: CEILING, ..Tuning::default() }
}

fn within(timeout: Duration) -> ExecLimits {
    ExecLimits { timeout, ..LIMITS }
}

async fn bash(shell: &dyn Shell, line: &str) -> Result<ExecOutput, ShellError> {
    shell.run(&RemoteCommand::shell_line(line), LIMITS).await
}

async fn refused(target: &SshTarget, tuning: &Tuning) -> ShellError {
    match Connection::connect(target, tuning).await {
        Ok(_) => panic!("it connected"),
        Err(error) => error,
    }
}

#[tokio::test]
async fn a_commands_streams_and_end_come_back_as_they_were() {
    let Some(sshd) = Sshd::start() else { return };
    let shell = PodShell::new(sshd.target(), tuning());
    let output = bash(&shell, "echo out; echo err >&2; exit 7").await.unwrap();
    assert_eq!(output.status, ExecStatus::Code(7));
    assert_eq!((output.stdout.text().as_str(), output.stderr.text().as_str()), ("out\n", "err\n"));

    let output = bash(&shell, "kill -KILL $$").await.unwrap();
    assert_eq!(output.status, ExecStatus::Signal("KILL".to_owned()));
    let output = shell.run(&RemoteCommand::new(["no such program"]), LIMITS).await.unwrap();
    assert_eq!(output.status, ExecStatus::Code(127));

    let words = ["printf", "%s|", "a b", "$(touch PWN)", "it's", "", "*", "\n"];
    let output = shell.run(&RemoteCommand::new(words), LIMITS).await.unwrap();
    assert_eq!(output.stdout.text(), "a b|$(touch PWN)|it's||*|\n|");
    let output = shell.run(&RemoteCommand::new(["cat"]), LIMITS).await.unwrap();
    assert_eq!((output.status, output.stdout.total), (ExecStatus::Code(0), 0));
}

#[tokio::test]
async fn output_beyond_the_cap_is_drained_and_its_end_is_kept() {
    let Some(sshd) = Sshd::start() else { return };
    let shell = PodShell::new(sshd.target(), tuning());
    let output =
        bash(&shell, "seq 2000000; echo the end; seq 100000 >&2; echo last >&2").await.unwrap();
    assert_eq!(output.stdout.bytes.len(), 8000);
    assert!(output.stdout.text().ends_with("2000000\nthe end\n"));
    assert_eq!(output.stdout.total, 14_888_896 + 8);
    assert!(output.stderr.is_truncated() && output.stderr.text().ends_with("100000\nlast\n"));
}

#[tokio::test]
async fn fifty_megabytes_of_stdin_arrive_whole_or_are_ignored_without_a_hang() {
    let Some(sshd) = Sshd::start() else { return };
    let shell = PodShell::new(sshd.target(), tuning());
    let bytes: Vec<u8> =
        (0..50_000_000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let expected = {
        use sha2::Digest as _;
        sha2::Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect::<String>()
    };
    let sum = "if type sha256sum >/dev/null 2>&1; then sha256sum; else shasum -a 256; fi";
    let command = RemoteCommand::shell_line(sum).with_stdin(bytes.clone());
    let output = shell.run(&command, LIMITS).await.unwrap();
    assert!(output.stdout.text().starts_with(&expected), "{output:?}");
    let command = RemoteCommand::new(["true"]).with_stdin(bytes);
    assert!(shell.run(&command, LIMITS).await.unwrap().succeeded());
}

#[tokio::test]
async fn a_timeout_leaves_the_connection_usable() {
    let Some(sshd) = Sshd::start() else { return };
    let connection = Connection::connect(&sshd.target(), &tuning()).await.unwrap();
    // It writes all the while: a channel that nobody reads would block the others.
    let command = RemoteCommand::shell_line("yes & sleep 600");
    let error = connection.run(&command, within(Duration::from_millis(300))).await.unwrap_err();
    assert_eq!(error.kind, ShellErrorKind::Timeout, "{error}");
    for _ in 0..10 {
        assert!(bash(&connection, "true").await.unwrap().succeeded());
    }
    assert!(!connection.is_closed());
}

/// sshd frees no slot while a command lives, so after ten that hang a connection is full.
#[tokio::test]
async fn commands_that_hang_do_not_use_up_the_shell() {
    let Some(sshd) = Sshd::start_with("MaxSessions 3", "") else { return };
    let shell = PodShell::new(sshd.target(), tuning());
    let hang = RemoteCommand::shell_line("exec sleep 600");
    for _ in 0..3 {
        let error = shell.run(&hang, within(Duration::from_millis(500))).await.unwrap_err();
        assert_eq!(error.kind, ShellErrorKind::Timeout, "{error}");
    }
    assert!(bash(&shell, "true").await.unwrap().succeeded());
}

#[tokio::test]
async fn a_background_child_does_not_hold_up_the_answer() {
    let Some(sshd) = Sshd::start() else { return };
    let shell = PodShell::new(sshd.target(), tuning());
    let output = bash(&shell, "sleep 600 & echo started").await.unwrap();
    assert_eq!((output.status, output.stdout.text().as_str()), (ExecStatus::Code(0), "started\n"));
}

#[tokio::test]
async fn two_commands_run_side_by_side_on_one_connection() {
    let Some(sshd) = Sshd::start() else { return };
    let shell = PodShell::new(sshd.target(), tuning());
    let pipe = sshd.path("pipe").display().to_string();
    assert!(bash(&shell, &format!("mkfifo '{pipe}'")).await.unwrap().succeeded());
    // Each end of a named pipe waits for the other, so one after the other would never end.
    let read = RemoteCommand::new(["cat", &pipe]);
    let write = RemoteCommand::shell_line(&format!("echo through > '{pipe}'"));
    let (read, write) = tokio::join!(shell.run(&read, LIMITS), shell.run(&write, LIMITS));
    assert_eq!(read.unwrap().stdout.text(), "through\n");
    assert!(write.unwrap().succeeded());
    assert_eq!(sshd.log().matches("Accepted publickey").count(), 1, "{}", sshd.log());
}

#[tokio::test]
async fn a_hundred_commands_share_eight_channels() {
    let Some(sshd) = Sshd::start() else { return };
    let shell = Arc::new(PodShell::new(sshd.target(), tuning()));
    let tasks: Vec<_> = (0..100)
        .map(|i| {
            let shell = Arc::clone(&shell);
            tokio::spawn(
                async move { bash(&*shell, &format!("echo {i}")).await.map(|out| (i, out)) },
            )
        })
        .collect();
    for task in tasks {
        let (i, output) = task.await.unwrap().unwrap();
        assert_eq!(output.stdout.text(), format!("{i}\n"));
    }
    assert_eq!(sshd.log().matches("Accepted publickey").count(), 1);
}

/// F03, F06: a server that accepts connections and says nothing is told from one that is not there.
#[tokio::test]
async fn a_connect_always_ends() {
    let Some(sshd) = Sshd::start() else { return };
    let hole = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut target = sshd.target();
    target.endpoint.port = hole.local_addr().unwrap().port();
    let brief = Tuning { connect_timeout: Duration::from_millis(500), ..Tuning::default() };
    let start = Instant::now();
    let error = refused(&target, &brief).await;
    assert_eq!(error.kind, ShellErrorKind::Unreachable, "{error}");
    assert!(error.detail.contains("accepts connections"), "{error}");
    assert!(start.elapsed() < Duration::from_secs(15));

    target.endpoint.port = free_port();
    assert_eq!(refused(&target, &tuning()).await.kind, ShellErrorKind::Refused);

    let chatty = TcpListener::bind("127.0.0.1:0").unwrap();
    target.endpoint.port = chatty.local_addr().unwrap().port();
    let answering = std::thread::spawn(move || {
        use std::io::Write as _;
        let (mut stream, _) = chatty.accept().unwrap();
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
    });
    let error = refused(&target, &tuning()).await;
    assert_eq!(error.kind, ShellErrorKind::Handshake, "{error}");
    answering.join().unwrap();
}

/// F03, F04: a peer that stands still is noticed, and what ran is not run again.
#[tokio::test]
async fn a_frozen_server_is_noticed_and_the_command_is_not_repeated() {
    let Some(sshd) = Sshd::start() else { return };
    let shell = PodShell::new(sshd.target(), impatient());
    let marks = sshd.path("marks");
    let line = format!("echo x >> '{}'; sleep 600", marks.display());
    let command = RemoteCommand::shell_line(&line);
    let (error, ()) = tokio::join!(shell.run(&command, LIMITS), async {
        let marked = marks.clone();
        tokio::task::spawn_blocking(move || wait_until("the command to run", || marked.exists()))
            .await
            .unwrap();
        sshd.signal_sessions("STOP");
    });
    let error = error.unwrap_err();
    assert_eq!(error.kind, ShellErrorKind::Lost, "{error}");
    assert!(error.detail.contains("keep-alive"), "{error}");
    sshd.signal_sessions("KILL");
    // The next command gets a connection of its own.
    assert!(bash(&shell, "true").await.unwrap().succeeded());
    assert_eq!(fs::read_to_string(&marks).unwrap(), "x\n");
}

/// russh's keep-alive is not served while a write is stuck.
#[tokio::test]
async fn a_frozen_server_is_noticed_while_we_upload() {
    let Some(sshd) = Sshd::start() else { return };
    let shell = PodShell::new(sshd.target(), impatient());
    assert!(bash(&shell, "true").await.unwrap().succeeded());
    sshd.signal_sessions("STOP");
    let upload = RemoteCommand::new(["cat"]).with_stdin(vec![0; 8 << 20]);
    let start = Instant::now();
    let error = shell.connection().await.unwrap().run(&upload, LIMITS).await.unwrap_err();
    assert_eq!(error.kind, ShellErrorKind::Lost, "{error}");
    assert!(start.elapsed() < CEILING);
}

/// F05: strict within a boot, pinned anew by the next one.
#[tokio::test]
async fn another_host_key_is_refused_within_a_boot_and_pinned_by_the_next() {
    let Some(mut sshd) = Sshd::start() else { return };
    let mut target = sshd.target();
    Connection::connect(&target, &tuning()).await.unwrap();
    let pinned = fs::read_to_string(&target.known_hosts).unwrap();

    fs::rename(sshd.path("host_ed25519"), sshd.path("host_old")).unwrap();
    keygen(&sshd.path("host_ed25519"), "ed25519", "");
    sshd.restart_with(|config| config);
    let error = refused(&target, &tuning()).await;
    assert_eq!(error.kind, ShellErrorKind::HostKey, "{error}");
    // A key of another algorithm is a change too.
    sshd.restart_with(|config| config.replace("host_ed25519", "host_ecdsa"));
    let error = refused(&target, &tuning()).await;
    assert_eq!(error.kind, ShellErrorKind::HostKey, "{error}");
    assert_eq!(fs::read_to_string(&target.known_hosts).unwrap(), pinned);

    target.boot = "2026-07-03 14:00:00 +0000 UTC".to_owned();
    Connection::connect(&target, &tuning()).await.unwrap();
    Connection::connect(&target, &tuning()).await.unwrap();
    let repinned = fs::read_to_string(&target.known_hosts).unwrap();
    assert!(repinned.lines().count() == 1 && repinned.contains("14:00:00"), "{repinned}");
    // OpenSSH reads the same pin.
    let port = target.endpoint.port.to_string();
    let known_hosts = format!("UserKnownHostsFile={}", target.known_hosts.display());
    let ssh = Command::new("ssh")
        .args(["-F", "none", "-p", &port, "-i", target.identity.to_str().unwrap()])
        .args(["-o", "StrictHostKeyChecking=yes", "-o", "HostKeyAlias=pod1", "-o", &known_hosts])
        .args(["-o", "GlobalKnownHostsFile=none", "-o", "BatchMode=yes", "127.0.0.1", "true"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(ssh.status.success(), "{ssh:?}");
}

#[tokio::test]
async fn an_unreadable_pin_is_never_taken_for_no_pin() {
    let Some(sshd) = Sshd::start() else { return };
    let target = sshd.target();
    fs::write(&target.known_hosts, "pod1 ssh-ed25519 oops\n").unwrap();
    let error = refused(&target, &tuning()).await;
    assert_eq!(error.kind, ShellErrorKind::Local, "{error}");
    assert!(error.detail.contains("line 1"), "{error}");
}

/// F06: a wrong key is told from a pod that is not there yet.
#[tokio::test]
async fn a_key_that_is_not_accepted_is_told_from_one_that_cannot_be_used() {
    let Some(sshd) = Sshd::start() else { return };
    let mut target = sshd.target();
    target.identity = sshd.path("other");
    let error = refused(&target, &tuning()).await;
    assert_eq!(error.kind, ShellErrorKind::Local);
    assert!(error.detail.contains("ssh-keygen"), "{error}");

    keygen(&target.identity, "ed25519", "");
    let error = refused(&target, &tuning()).await;
    assert_eq!(error.kind, ShellErrorKind::Auth, "{error}");
    assert!(error.detail.contains("PUBLIC_KEY"), "{error}");

    fs::set_permissions(&target.identity, fs::Permissions::from_mode(0o644)).unwrap();
    let error = refused(&target, &tuning()).await;
    assert_eq!(error.kind, ShellErrorKind::Local);
    assert!(error.detail.contains("chmod 600"), "{error}");

    target.identity = sshd.path("locked");
    keygen(&target.identity, "ed25519", "a passphrase");
    let error = refused(&target, &tuning()).await;
    assert_eq!(error.kind, ShellErrorKind::Local);
    assert!(error.detail.contains("encrypted") && error.detail.contains("ssh-add"), "{error}");
}

struct Agent(std::process::Child);

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn an_agent_is_used_with_exactly_the_named_key() {
    let Some(sshd) = Sshd::start() else { return };
    let socket = sshd.path("agent");
    let agent = Command::new("ssh-agent")
        .args(["-D", "-a"])
        .arg(&socket)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let _agent = Agent(agent);
    wait_until("the agent", || socket.exists());
    let add = |key: &str| {
        let added = Command::new("ssh-add")
            .arg(sshd.path(key))
            .env("SSH_AUTH_SOCK", &socket)
            .output()
            .unwrap();
        assert!(added.status.success(), "{added:?}");
    };
    let with_agent = Tuning { agent_socket: Some(socket.clone()), ..tuning() };
    keygen(&sshd.path("rsa"), "rsa", "");
    keygen(&sshd.path("locked"), "ed25519", "a passphrase");
    let keys = fs::read_to_string(sshd.path("authorized_keys")).unwrap()
        + &fs::read_to_string(sshd.path("rsa.pub")).unwrap();
    fs::write(sshd.path("authorized_keys"), keys).unwrap();

    // The server would accept `id`, which the agent holds; the named key is another one.
    add("id");
    let mut target = sshd.target();
    target.identity = sshd.path("locked");
    let error = refused(&target, &with_agent).await;
    assert_eq!(error.kind, ShellErrorKind::Local, "{error}");
    assert!(error.detail.contains("not this one"), "{error}");

    target.identity = sshd.path("rsa");
    let error = refused(&target, &tuning()).await;
    assert!(error.detail.contains("RSA"), "{error}");
    add("rsa");
    Connection::connect(&target, &with_agent).await.unwrap();

    // Only the public half on disk.
    target.identity = sshd.path("id");
    fs::rename(sshd.path("id"), sshd.path("away")).unwrap();
    Connection::connect(&target, &with_agent).await.unwrap();
}

#[test]
fn the_public_key_comes_from_its_file_or_from_the_private_key() {
    let folder = tempfile::tempdir().unwrap();
    let identity = folder.path().join("id");
    keygen(&identity, "ed25519", "");
    let public = folder.path().join("id.pub");
    let written = fs::read_to_string(&public).unwrap();
    assert_eq!(public_key_text(&identity).unwrap(), written.trim());
    fs::remove_file(&public).unwrap();
    assert_eq!(public_key_text(&identity).unwrap(), written.trim());

    let other = folder.path().join("other");
    keygen(&other, "ed25519", "");
    fs::copy(folder.path().join("other.pub"), &public).unwrap();
    let error = public_key_text(&identity).unwrap_err();
    assert!(error.detail.contains("does not belong"), "{error}");
    assert!(public_key_text(&folder.path().join("none")).is_err());
}
