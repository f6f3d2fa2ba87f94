//! Results and commands over links and pods as they are: no rsync, a talking shell, connections that drop
//! or stand still, machines that are somebody else's.

use super::fixture::{Fixture, VEHICLE, ensure, exec};
use super::signals::WAITS;
use super::supervised::Run;
use podtether::error::{FailureKind, StillBilling};
use podtether::ops::{EnsureStatus, Tether};
use serde_json::json;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

fn write(fixture: &Fixture, path: &str, content: &[u8]) {
    let path = fixture.volume().join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

async fn stopped_and_started_with(fixture: &Fixture, tether: &Tether, faults: &[&str]) {
    assert!(tether.stop_pod(VEHICLE).await.unwrap().is_off());
    fixture.set_faults(faults).await;
    fixture.running(tether).await;
}

/// D05: a stop has taken rsync with the container disk.
#[tokio::test(flavor = "multi_thread")]
async fn a_pod_without_rsync_gets_it_back_or_sends_by_tar() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    fixture.set_faults(&["no-rsync"]).await;
    fixture.running(&tether).await;
    write(&fixture, "results/a", b"1");
    let synced = tether.sync_logs("results", None, false, |_| {}).await.unwrap();
    assert!(synced.complete && synced.warnings.iter().any(|said| said.contains("installed again")));
    assert_eq!(fs::read(fixture.path("logs/results/a")).unwrap(), b"1");

    stopped_and_started_with(&fixture, &tether, &["no-rsync", "no-packages"]).await;
    write(&fixture, "results/b", b"2");
    let synced = tether.sync_logs("results", None, false, |_| {}).await.unwrap();
    let said = synced.warnings.join("\n");
    assert!(synced.complete && said.contains("E: Failed to fetch"), "{synced:?}");
    assert!(said.contains("tar was used"), "{said}");
    assert_eq!(fs::read(fixture.path("logs/results/b")).unwrap(), b"2");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shell_that_writes_a_greeting_spoils_neither_jobs_nor_results() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    fixture.set_faults(&["noisy-shell"]).await;
    fixture.running(&tether).await;
    let answer = tether.exec_on_pod(&exec("echo mine")).await.unwrap();
    assert!(answer.stdout.ends_with("mine\n"), "{answer:?}");
    let command = "mkdir -p results && head -c 70000 /dev/urandom >results/a && echo done";
    let outcome = Run::start(
        &fixture,
        &["--job-name", "job", "--command", command, "--sync-subdir", "results"],
    )
    .end()
    .await;
    assert_eq!(outcome.code, 0, "{outcome:#?}");
    let summary = outcome.file();
    assert_eq!(
        (&summary["state"], &summary["capture_complete"]),
        (&json!("succeeded"), &json!(true))
    );
    let warnings = summary["pulled"]["analysis"]["warnings"].to_string();
    assert!(warnings.contains("Enjoy your Pod"), "{warnings}");
    let here = fs::read(fixture.path("logs/results/a")).unwrap();
    assert!(here == fs::read(fixture.volume().join("results/a")).unwrap());
}

/// F06: a pod that lets nobody in is told from one that is not up yet, and can be stopped.
#[tokio::test(flavor = "multi_thread")]
async fn a_pod_that_lets_nobody_in_is_named_and_can_be_stopped() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    fixture.set_faults(&["no-public-key"]).await;
    let failure = loop {
        match tether.ensure_pod(&ensure(45)).await {
            Ok(answer) => assert_eq!(answer.status, Some(EnsureStatus::StillInitializing)),
            Err(failure) => break failure,
        }
    };
    assert_eq!((failure.kind, failure.still_billing), (FailureKind::SshAuth, StillBilling::Yes));
    assert!(failure.message.contains("PUBLIC_KEY"), "{failure}");
    for failure in [
        tether.exec_on_pod(&exec("true")).await.unwrap_err(),
        tether.sync_logs("jobs", None, false, |_| {}).await.unwrap_err(),
    ] {
        assert!(failure.message.contains("PUBLIC_KEY"), "{failure}");
    }
    assert!(tether.stop_pod(VEHICLE).await.unwrap().is_off());
}

/// F04: what was begun when the link was lost is not begun again; a pull, which only reads, is.
#[tokio::test(flavor = "multi_thread")]
async fn a_link_that_drops_repeats_no_command_and_loses_no_result() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    fixture.set_faults(&["link-drops=1"]).await;
    let failure = tether.exec_on_pod(&exec("echo x >>marks")).await.unwrap_err();
    assert_eq!((failure.kind, failure.retryable), (FailureKind::SshUnreachable, true), "{failure}");
    assert!(failure.message.contains("may have run"), "{failure}");
    let marks = fixture.volume().join("marks");
    fixture.until("the command to run", async || marks.exists()).await;
    assert_eq!(tether.exec_on_pod(&exec("cat marks")).await.unwrap().stdout, "x\n");

    write(&fixture, "results/a", &[7; 300_000]);
    fixture.set_faults(&["link-drops=2"]).await;
    let synced = tether.sync_logs("results", None, false, |_| {}).await.unwrap();
    assert!(synced.complete, "{synced:?}");
    assert_eq!(fs::read(fixture.path("logs/results/a")).unwrap(), [7; 300_000]);
}

/// F03: a link that stands still is given up in time by whoever waits, and waited for by a pull.
#[tokio::test(flavor = "multi_thread")]
async fn a_link_that_stands_still_is_bounded_and_outlived() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    write(&fixture, "results/a", &[7; 300_000]);
    fixture.set_faults(&["link-stalls=600"]).await;
    let impatient = podtether::ops::ExecRequest { timeout_sec: 1, ..exec("echo late") };
    let failure = tether.exec_on_pod(&impatient).await.unwrap_err();
    assert_eq!((failure.kind, failure.still_billing), (FailureKind::Timeout, StillBilling::Yes));
    // A stop does not go that way.
    fixture.set_faults(&["link-stalls=3"]).await;
    let synced = tether.sync_logs("results", None, false, |_| {}).await.unwrap();
    assert!(synced.complete, "{synced:?}");
    fixture.set_faults(&["link-stalls=600"]).await;
    let start = std::time::Instant::now();
    assert!(tether.stop_pod(VEHICLE).await.unwrap().is_off());
    assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
}

/// F01: somebody else's machine at the pod's address is asked who it is and nothing else.
#[tokio::test(flavor = "multi_thread")]
async fn a_machine_that_is_not_ours_is_sent_no_command_and_no_file() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    assert!(tether.stop_pod(VEHICLE).await.unwrap().is_off());
    fixture.set_faults(&["other-machine"]).await;
    let before = fs::read_to_string(fixture.path("known_hosts")).unwrap();
    tether.ensure_pod(&ensure(0)).await.unwrap();
    fixture
        .until("an SSH endpoint", async || {
            fixture
                .pods_named(super::fixture::POD)
                .await
                .iter()
                .any(|pod| !pod["ssh"]["direct"].is_null())
        })
        .await;
    let pod = fixture.pods_named(super::fixture::POD).await[0]["id"].as_str().unwrap().to_owned();
    let answer = tether.ensure_pod(&ensure(3)).await.unwrap();
    assert_eq!(answer.status, Some(EnsureStatus::StillInitializing), "{answer:?}");
    assert!(answer.message.contains("another machine answers"), "{}", answer.message);
    let sent = fixture.sessions(&pod).len();
    for failure in [
        tether.exec_on_pod(&exec("touch here")).await.unwrap_err(),
        tether.sync_logs("jobs", None, false, |_| {}).await.unwrap_err(),
    ] {
        assert_eq!((failure.kind, failure.retryable), (FailureKind::SshUnreachable, true));
        assert!(failure.message.contains("another machine answers"), "{failure}");
    }
    assert!(!fixture.volume().join("here").exists());
    fixture.until("the questions to end", async || fixture.sessions(&pod).len() >= sent + 2).await;
    let sessions = fixture.sessions(&pod);
    // The end of each command, since a script travels whole.
    let ends = sessions[sent..].iter().map(|one| {
        let words: Vec<&str> = one.command.rsplit(' ').take(5).collect();
        words.into_iter().rev().collect::<Vec<_>>().join(" ")
    });
    let other: Vec<String> = ends.filter(|end| !end.ends_with(" who - 0 -")).collect();
    assert_eq!(other, Vec::<String>::new());
    assert_eq!(fs::read_to_string(fixture.path("known_hosts")).unwrap(), before);
    assert!(tether.stop_pod(VEHICLE).await.unwrap().is_off());
}

/// D08: the folder of the volume is there and the volume is not.
#[tokio::test(flavor = "multi_thread")]
async fn a_volume_that_was_unmounted_is_not_taken_for_an_empty_one() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    write(&fixture, "results/a", b"1");
    assert!(tether.sync_logs("results", None, false, |_| {}).await.unwrap().complete);
    let identity = fixture.volume().join(".podtether/identity");
    fs::rename(&identity, fixture.path("identity")).unwrap();
    let failure = tether.sync_logs("results", None, false, |_| {}).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Transfer);
    assert!(failure.message.contains("is not mounted on the pod"), "{failure}");
    assert_eq!(fs::read(fixture.path("logs/results/a")).unwrap(), b"1");
}

/// D02: while a job writes, a pull says what is not whole; the last one comes after the job is gone.
#[tokio::test(flavor = "multi_thread")]
async fn a_checkpoint_that_is_being_written_is_named_and_the_last_pull_has_it_whole() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    let command = format!(
        "mkdir -p results; : >results/last.pt; (until test -e go; do head -c 20000 /dev/urandom >>results/model.pt; sleep 0.01; done) & {WAITS}; wait"
    );
    let mut run = Run::start(
        &fixture,
        &["--job-name", "job", "--command", &command, "--sync-subdir", "results"],
    );
    run.says("launched:").await;
    let growing = fixture.volume().join("results/model.pt");
    fixture.until("a checkpoint", async || growing.exists()).await;
    // On a busy machine the job may stand still for as long as one pull takes.
    let mut synced = None;
    let pull = async || {
        let pulled = tether.sync_logs("results", None, false, |_| {}).await.unwrap();
        !synced.insert(pulled).complete
    };
    fixture.until("a pull while it grows", pull).await;
    let synced = synced.unwrap();
    assert!(synced.missing.contains(&"model.pt".to_owned()), "{synced:?}");
    let said = synced.warnings.join("\n");
    assert!(said.contains("model.pt is still being written"), "{said}");
    assert!(said.contains("last.pt is empty on the pod"), "{said}");
    fs::write(fixture.volume().join("go"), "").unwrap();
    let outcome = run.end().await;
    assert_eq!(outcome.code, 0, "{outcome:#?}");
    let summary = outcome.file();
    assert_eq!(summary["capture_complete"], true, "{summary:#}");
    assert!(fs::read(fixture.path("logs/results/model.pt")).unwrap() == fs::read(growing).unwrap());
    // What was found equal is written down, file by file.
    let proof = summary["pulled"]["analysis"]["proof"].as_str().unwrap();
    assert!(proof.contains("2 files compared by SHA-256"), "{proof}");
    let manifests = fs::read_dir(fixture.path("logs/.podtether/manifests")).unwrap();
    let manifests: Vec<_> = manifests.map(|entry| entry.unwrap().file_name()).collect();
    assert!(manifests.iter().any(|name| name.to_str().unwrap().starts_with("results-")));
}

/// D04: the rsync of a stock Mac takes none of rsync 3's options and passes raw words.
#[tokio::test(flavor = "multi_thread")]
async fn the_rsync_of_a_stock_mac_brings_the_results_too() {
    let others = ["/opt/homebrew/bin/rsync", "/usr/local/bin/rsync"];
    if others.iter().any(|other| Path::new(other).exists()) {
        return crate::sshd::skip("a better rsync would be taken");
    }
    let Some(real) = ["/usr/bin/rsync", "/bin/rsync"].into_iter().find(|at| Path::new(at).exists())
    else {
        return crate::sshd::skip("no rsync on this machine");
    };
    let fixture = Fixture::new();
    let folder = fixture.path("bin");
    fs::create_dir(&folder).unwrap();
    let body = format!(
        r#"#!/bin/bash
if [[ $1 == --version ]]; then
  printf 'openrsync: protocol version 29\nrsync version 2.6.9 compatible\n'
  exit 0
fi
for word; do
  case $word in
  --) break ;;
  -s | --info=* | --no-inc-recursive | --append-verify | --mkpath | --outbuf=*)
    echo "openrsync: unrecognized option $word" >&2
    exit 1 ;;
  esac
done
printf '%s\n' "$*" >>'{log}'
export RSYNC_OLD_ARGS=1
exec {real} "$@"
"#,
        log = fixture.path("rsync.log").display().to_string().replace('\'', r"'\''"),
    );
    fs::write(folder.join("rsync"), body).unwrap();
    fs::set_permissions(folder.join("rsync"), fs::Permissions::from_mode(0o755)).unwrap();
    let tether = fixture.tether_with_path(folder.into_os_string()).await;
    fixture.running(&tether).await;
    write(&fixture, "re sults/it's $(touch PWN)", b"1");
    let synced = tether.sync_logs("re sults", None, false, |_| {}).await.unwrap();
    assert!(synced.complete, "{synced:?}");
    assert_eq!(fs::read(fixture.path("logs/re sults/it's $(touch PWN)")).unwrap(), b"1");
    let asked = fs::read_to_string(fixture.path("rsync.log")).unwrap();
    assert!(asked.contains("--partial-dir") && asked.contains("transport"), "{asked}");
}
