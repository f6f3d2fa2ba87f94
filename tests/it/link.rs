//! The way to a pod when it is bad: crowds, slow and talkative servers, black holes, and addresses that
//! are somebody else's.

use crate::sshd::{CEILING, Sshd};
use podtether::domain::RemoteCommand;
use podtether::pod::ssh::{Connection, PodShell, Proof, Tuning};
use podtether::pod::transfer::{PullRequest, RsyncProgram, TransferError, pull};
use podtether::pod::{ExecLimits, Shell as _, ShellErrorKind};
use std::fs;
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};

const LIMITS: ExecLimits = ExecLimits { timeout: CEILING, stdout_bytes: 8000, stderr_bytes: 4000 };

fn tuning() -> Tuning {
    Tuning { connect_timeout: CEILING, ..Tuning::default() }
}

/// sshd turns away whoever comes while too many others are at the door (MaxStartups).
#[tokio::test]
async fn those_who_are_turned_away_in_a_crowd_come_again_and_get_in() {
    let Some(sshd) = Sshd::start_with("MaxStartups 1\nLogLevel VERBOSE", "") else { return };
    let target = sshd.target();
    let tasks: Vec<_> = (0..6)
        .map(|_| {
            let target = target.clone();
            tokio::spawn(async move { Connection::connect(&target, &tuning()).await.map(|_| ()) })
        })
        .collect();
    for task in tasks {
        task.await.unwrap().unwrap();
    }
    assert!(sshd.log().contains("MaxStartups"), "nobody was turned away: {}", sshd.log());
}

#[tokio::test]
async fn a_banner_is_no_output_of_a_command() {
    let folder = tempfile::tempdir().unwrap();
    let banner = folder.path().join("banner");
    fs::write(&banner, "All activity may be monitored.\n".repeat(300)).unwrap();
    let Some(sshd) = Sshd::start_with(&format!("Banner {}", banner.display()), "") else { return };
    let shell = PodShell::new(sshd.target(), tuning());
    let output = shell.run(&RemoteCommand::new(["echo", "alone"]), LIMITS).await.unwrap();
    assert_eq!((output.stdout.text().as_str(), output.stderr.total), ("alone\n", 0));
}

/// A server in front of a server: it takes its time, writes lines of its own first, then lets through.
async fn proxy(port: u16, lines: &'static str, every: Duration) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            tokio::spawn(async move {
                for line in lines.split_inclusive('\n') {
                    tokio::time::sleep(every).await;
                    if client.write_all(line.as_bytes()).await.is_err() {
                        return;
                    }
                }
                if let Ok(mut server) = TcpStream::connect(("127.0.0.1", port)).await {
                    let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
                }
            });
        }
    });
    at
}

/// RFC 4253 4.2: a server may write lines before it greets.
#[tokio::test]
async fn a_greeting_may_be_slow_and_come_after_other_lines() {
    let Some(sshd) = Sshd::start() else { return };
    let mut target = sshd.target();
    let every = Duration::from_millis(300);
    target.endpoint.port = proxy(sshd.port, "One moment.\r\nThe pod wakes up.\r\n", every).await;
    let shell = PodShell::new(target, tuning());
    let output = shell.run(&RemoteCommand::new(["echo", "there"]), LIMITS).await.unwrap();
    assert_eq!(output.stdout.text(), "there\n");
}

/// F03: a greeting that never comes to its end is waited for no longer than any other.
#[tokio::test]
async fn a_greeting_without_end_ends_in_time() {
    let Some(sshd) = Sshd::start() else { return };
    let mut target = sshd.target();
    let endless = "not yet\r\n".repeat(5_000).leak();
    target.endpoint.port = proxy(sshd.port, endless, Duration::from_millis(30)).await;
    let brief = Tuning { connect_timeout: Duration::from_secs(1), ..Tuning::default() };
    let error = Connection::connect(&target, &brief).await.err().unwrap();
    let kinds = [ShellErrorKind::Unreachable, ShellErrorKind::Handshake];
    assert!(kinds.contains(&error.kind), "{error}");
}

/// F03: an address that swallows what is sent to it, as a pod that was just taken away does.
#[tokio::test]
#[cfg(target_os = "linux")]
async fn a_black_hole_is_given_up_in_time_and_named() {
    let Some(sshd) = Sshd::start() else { return };
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    // Nobody accepts, and once the queue is full Linux drops what else comes.
    let hole = socket.listen(1).unwrap();
    let address = hole.local_addr().unwrap();
    let mut queue = Vec::new();
    let brief = Duration::from_millis(300);
    while let Ok(Ok(stream)) = tokio::time::timeout(brief, TcpStream::connect(address)).await {
        queue.push(stream);
        assert!(queue.len() < 50, "the queue does not fill");
    }
    let mut target = sshd.target();
    target.endpoint.port = address.port();
    let tuning = Tuning { connect_timeout: brief, ..Tuning::default() };
    let error = Connection::connect(&target, &tuning).await.err().unwrap();
    assert_eq!(error.kind, ShellErrorKind::Unreachable, "{error}");
    assert!(error.detail.contains("nothing answers"), "{error}");
}

/// F01: an old address may be somebody else's pod. Which one answers is asked before the first command,
/// and no key is pinned and nothing else sent until it has said so.
#[tokio::test]
async fn a_machine_has_to_prove_which_pod_it_is_before_the_first_command() {
    let folder = tempfile::tempdir().unwrap();
    let environment = folder.path().join("rp_environment");
    let variable = format!("PODTETHER_RP_ENVIRONMENT={}", environment.display());
    let Some(sshd) = Sshd::start_with("", &variable) else { return };
    let target = sshd.target();
    let mark = sshd.path("mark");
    let proof = || Proof {
        mount: sshd.path("mount").display().to_string(),
        token: Some("volume1".to_owned()),
    };
    let touch = async || {
        let shell = PodShell::new(target.clone(), tuning()).proving(proof());
        shell.run(&RemoteCommand::new(["touch", mark.to_str().unwrap()]), LIMITS).await
    };
    let says = |text: &str| fs::write(&environment, text).unwrap();
    says("export RUNPOD_POD_ID=\"another\"\n");
    let error = touch().await.unwrap_err();
    assert_eq!(error.kind, ShellErrorKind::Identity, "{error}");
    assert!(error.detail.contains("another machine answers at its address (another)"), "{error}");
    // One that says nothing is not trusted either, unless it has our volume.
    says("");
    let error = touch().await.unwrap_err();
    assert_eq!(error.kind, ShellErrorKind::Identity, "{error}");
    assert!(!mark.exists() && !target.known_hosts.exists());
    fs::create_dir_all(sshd.path("mount/.podtether")).unwrap();
    fs::write(sshd.path("mount/.podtether/identity"), "volume1\n").unwrap();
    touch().await.unwrap();
    assert!(mark.exists());

    fs::remove_file(&target.known_hosts).unwrap();
    says("export RUNPOD_POD_ID=\"pod1\"\n");
    touch().await.unwrap();
    let pinned = fs::read_to_string(&target.known_hosts).unwrap();
    assert_eq!(pinned.lines().count(), 1, "{pinned}");
    // From here on the pinned key is the proof: nobody else has it.
    says("export RUNPOD_POD_ID=\"another\"\n");
    touch().await.unwrap();
}

/// F01: the same holds for files, whose connections are made by other processes.
#[tokio::test]
async fn files_go_only_over_connections_to_a_pinned_key() {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let Ok(rsync) = RsyncProgram::probe(&path).await else { return };
    let Some(sshd) = Sshd::start() else { return };
    let remote = sshd.path("remote");
    fs::create_dir(&remote).unwrap();
    fs::write(remote.join("a"), "1").unwrap();
    let shell = PodShell::new(sshd.target(), tuning());
    for rsync in [Some(rsync), None] {
        let mut request = PullRequest::new(
            sshd.target(),
            tuning(),
            env!("CARGO_BIN_EXE_podtether").into(),
            rsync,
            remote.display().to_string(),
            sshd.path("here/a"),
        );
        request.target.known_hosts = sshd.path("empty");
        let error = pull(&request, &shell, |_| {}).await.unwrap_err();
        assert!(error.to_string().contains("no host key is pinned"), "{error}");
        let stops =
            matches!(error, TransferError::Link { attempts: 1, .. } | TransferError::Shell(_));
        assert!(stops && !sshd.path("empty").exists());
    }
}
