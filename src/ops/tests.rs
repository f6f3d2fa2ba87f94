//! What the verbs say about the bill, against a scripted provider.

mod bills;
mod starts;

use super::*;
use crate::apply::OffSettings;
use crate::clock::{Clock as _, SystemClock};
use crate::cloud::scripted::{Look, Scripted};
use crate::cloud::{Balance, BilledSpan, Changed, CloudErrorKind};
use crate::config::Environment;
use crate::domain::{PodId, PodStatus, Price, sample};
use crate::plan::Spent;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

const CONFIG: &str = "\
cloud: runpod
vehicles:
  hippocampus:
    pod_name: lts-replication
    network_volume_name: lts-volume
    datacenter_preference: [EU-RO-1]
    known_hosts_file: known_hosts
    local_log_dir: logs
    ssh_identity: id
strangers:
  tolerate: [a-friends]
";

/// A tether over a scripted provider, with short waits; and the folder that its config is in.
fn tether(cloud: Scripted) -> (Tether, Arc<Scripted>, tempfile::TempDir) {
    tether_with(cloud, "")
}

/// The same with more lines at the top level of the config.
fn tether_with(cloud: Scripted, config: &str) -> (Tether, Arc<Scripted>, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("podtether.yaml");
    std::fs::write(&path, format!("{CONFIG}{config}")).unwrap();
    let env = Environment::isolated([("HOME", folder.path())]);
    let config = crate::config::load(&path, &env).unwrap();
    let cloud = Arc::new(cloud);
    let surroundings =
        Surroundings { program: "podtether".into(), path: None, ssh_auth_sock: None };
    let off = OffSettings {
        budget: Duration::from_millis(100),
        read_every: Duration::from_millis(2),
        ask_again_after: Duration::from_millis(20),
    };
    let tether = Tether::new(
        config,
        Arc::clone(&cloud) as Arc<dyn Cloud>,
        SystemClock::shared(),
        surroundings,
    )
    .with_settings(Settings { off, ..Settings::default() });
    (tether, cloud, folder)
}

fn with_status(word: &str) -> Look {
    Ok(vec![Pod { status: PodStatus::from(word), ..sample::pod() }])
}

/// A05: a list that is empty for a moment is not taken for an account without the pod.
#[tokio::test]
async fn no_pod_is_said_only_after_several_lists_without_it() {
    let lists = vec![Ok(vec![]), Ok(vec![]), with_status("RUNNING")];
    let (tether, cloud, _folder) = tether(Scripted::new(lists, vec![with_status("EXITED")]));
    let answer = tether.stop_pod("hippocampus").await.unwrap();
    assert_eq!((answer.status, cloud.sent()), (StopStatus::Stopped, 1));
    let (tether, cloud, _folder) = self::tether(Scripted::new(vec![], vec![]));
    let answer = tether.stop_pod("hippocampus").await.unwrap();
    assert_eq!((answer.status, cloud.sent()), (StopStatus::NoPod, 0));
}

/// A list that cannot be read does not keep anybody from stopping a pod whose id is known.
#[tokio::test]
async fn a_known_pod_is_stopped_although_the_list_fails() {
    let lists = || vec![Err(CloudErrorKind::Server)];
    let looks = vec![with_status("RUNNING"), with_status("RUNNING"), with_status("EXITED")];
    let (tether, cloud, _folder) = tether(Scripted::new(lists(), looks.clone()));
    let known = PodId("pod1".into());
    let answer = tether.stop_known_pod("hippocampus", Some(&known)).await.unwrap();
    assert_eq!((answer.status, cloud.sent()), (StopStatus::Stopped, 1));
    // Without an id nothing is known, and that is said.
    let (tether, cloud, _folder) = self::tether(Scripted::new(lists(), looks));
    let failure = tether.stop_pod("hippocampus").await.unwrap_err();
    assert_eq!((failure.still_billing, cloud.sent()), (StillBilling::Unknown, 0));
    // B08: an id whose pod has another name is not touched.
    let foreign = Ok(vec![Pod { name: "stranger".into(), ..sample::pod() }]);
    let (tether, cloud, _folder) = self::tether(Scripted::new(lists(), vec![foreign]));
    assert!(tether.stop_known_pod("hippocampus", Some(&known)).await.is_err());
    assert_eq!(cloud.sent(), 0);
}

/// B08: a pod that somebody gave another name is not touched, and nobody who runs on it is told that it
/// is off.
#[tokio::test]
async fn a_pod_that_was_renamed_is_left_alone_and_said_to_bill() {
    let known = PodId("pod1".into());
    let renamed = |status: &str| {
        let pod = Pod { name: "stranger".into(), status: status.into(), ..sample::pod() };
        vec![Ok(vec![pod])]
    };
    // Shown by the list, and only by its own page.
    for lists in [renamed("RUNNING"), vec![Ok(vec![])]] {
        let (tether, cloud, _folder) = tether(Scripted::new(lists, renamed("RUNNING")));
        let answer = tether.stop_known_pod("hippocampus", Some(&known)).await.unwrap();
        assert_eq!((answer.status, cloud.sent()), (StopStatus::StopUnconfirmed, 0));
        assert!(answer.needs_a_person && answer.message.contains("MAY STILL BILL"), "{answer:?}");
    }
    let (tether, _, _folder) = tether(Scripted::new(renamed("EXITED"), renamed("EXITED")));
    let answer = tether.stop_known_pod("hippocampus", Some(&known)).await.unwrap();
    assert_eq!(answer.status, StopStatus::NoPod);
}

/// A05: a list that shows another pod of the name may still miss the one that is known.
#[tokio::test]
async fn a_known_pod_that_a_list_misses_is_stopped_beside_the_one_it_shows() {
    let another = Pod { id: PodId("pod2".into()), ..sample::pod() };
    let exited = |pod: &Pod| Pod { status: "EXITED".into(), ..pod.clone() };
    let pages = vec![
        Ok(vec![sample::pod(), another.clone()]),
        Ok(vec![exited(&sample::pod()), exited(&another)]),
    ];
    let (tether, cloud, _folder) = tether(Scripted::new(vec![Ok(vec![another])], pages));
    let known = PodId("pod1".into());
    let answer = tether.stop_known_pod("hippocampus", Some(&known)).await.unwrap();
    assert_eq!((answer.status, cloud.sent()), (StopStatus::Stopped, 2), "{answer:?}");
}

/// A pod that went from the lists was not read EXITED, and what was read before is not shown as after.
#[tokio::test]
async fn a_pod_that_vanished_is_not_said_to_have_been_read_exited() {
    let lists = vec![with_status("RUNNING"), Ok(vec![])];
    let (tether, _, _folder) = tether(Scripted::new(lists, vec![]));
    let answer = tether.stop_pod("hippocampus").await.unwrap();
    assert_eq!((answer.status, answer.observed), (StopStatus::Stopped, None));
    assert!(!answer.message.contains("EXITED"), "{}", answer.message);
}

/// `still_billing: no` beside a pod that bills would be believed.
#[test]
fn a_pod_on_its_way_is_no_running_pod_but_bills() {
    let vehicle = sample::vehicle();
    for (word, billing) in [
        ("STARTING", StillBilling::Yes),
        ("ERROR", StillBilling::Yes),
        ("MIGRATING", StillBilling::Yes),
        ("EXITED", StillBilling::No),
    ] {
        let failure = Tether::pick_running(&vehicle, &with_status(word).unwrap()).unwrap_err();
        assert_eq!((failure.kind, failure.still_billing), (FailureKind::NoPod, billing), "{word}");
    }
    let none = Tether::pick_running(&vehicle, &[]).unwrap_err();
    assert_eq!(none.still_billing, StillBilling::No);
}

#[tokio::test]
async fn a_refusal_and_a_silent_provider_say_what_bills() {
    let (tether, _, _folder) = tether(Scripted::new(vec![with_status("RUNNING")], vec![]));
    let failure = tether.terminate_pod("hippocampus", "yes").await.unwrap_err();
    assert_eq!((failure.kind, failure.still_billing), (FailureKind::Refused, StillBilling::Yes));
    let silent = Err(CloudErrorKind::Network { never_sent: true });
    let (tether, _, _folder) = self::tether(Scripted::new(vec![silent], vec![]));
    let failure = tether.pod_status(None).await.unwrap_err();
    assert_eq!(failure.still_billing, StillBilling::Unknown);
}

/// A create that fails after its volume was made leaves something on the bill.
#[tokio::test]
async fn a_volume_that_an_unfinished_create_made_is_said() {
    let answers = vec![Ok(Changed::Volume(sample::volume())), Err(CloudErrorKind::NoCapacity)];
    let cloud = Scripted::new(vec![Ok(vec![])], vec![]).without_volumes();
    let (tether, cloud, folder) = tether(cloud.answering(answers));
    // Without a key nothing runs yet, and nothing is said to.
    let failure = tether.ensure_pod(&EnsureRequest::default()).await.unwrap_err();
    assert_eq!((failure.still_billing, cloud.sent()), (StillBilling::No, 0));
    write_key(folder.path());
    let answer = tether.ensure_pod(&EnsureRequest::default()).await.unwrap();
    assert_eq!((answer.status, cloud.sent()), (Some(EnsureStatus::StartFailedNoGpu), 2));
    assert!(answer.message.contains("$4.20 a month"), "{}", answer.message);
}

/// F03: a machine that takes the connection and says nothing hides nothing of what bills.
#[tokio::test]
async fn a_pod_whose_shell_hangs_is_still_said_to_bill() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let ssh = crate::domain::SshEndpoint {
        host: "127.0.0.1".into(),
        port: silent.local_addr().unwrap().port(),
        user: "root".into(),
    };
    let pods = vec![Ok(vec![Pod { ssh: Some(ssh), ..sample::pod() }])];
    let (tether, _, folder) = tether(Scripted::new(pods, vec![]));
    let key = folder.path().join("id");
    #[expect(clippy::disallowed_methods, reason = "the key is made by OpenSSH")]
    let made = std::process::Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-f"])
        .arg(&key)
        .status()
        .unwrap();
    assert!(made.success());
    // Well below the 15 s that a connection may take to be made.
    let asked = tokio::time::timeout(Duration::from_secs(12), tether.pod_status(None)).await;
    let answer = asked.unwrap().unwrap();
    assert_eq!(answer.status, PodState::RunningSshPending);
    assert!(answer.message.contains("on the bill"), "{}", answer.message);
}

/// A pod that is at work is not stopped because the way to it is broken: boot_max_sec is for a boot
/// that was asked for here and has never been seen usable.
#[tokio::test]
async fn only_a_boot_that_was_asked_for_and_never_usable_is_given_up() {
    let pod = Pod { started_at: Some(chrono::DateTime::UNIX_EPOCH), ..sample::pod() };
    for asked_for in [false, true] {
        let shown = Ok(vec![pod.clone()]);
        let (tether, cloud, folder) = tether(Scripted::new(vec![shown.clone()], vec![shown]));
        write_key(folder.path());
        let vehicle = tether.vehicle(None).unwrap();
        if asked_for {
            let asked_at = chrono::DateTime::UNIX_EPOCH;
            boot::note(&vehicle, &boot::Boot { pod: pod.id.clone(), asked_at });
        }
        let answer = tether.ensure_pod(&EnsureRequest::default()).await;
        let status = answer.map(|answer| answer.status).map_err(|failure| failure.kind);
        if asked_for {
            assert_eq!(status, Err(FailureKind::Unconfirmed));
            assert!(cloud.sent() > 0);
        } else {
            assert_eq!((status, cloud.sent()), (Ok(Some(EnsureStatus::StillInitializing)), 0));
        }
    }
}

fn write_key(folder: &std::path::Path) {
    let private = folder.join("id");
    std::fs::write(&private, "-----BEGIN OPENSSH PRIVATE KEY-----\n").unwrap();
    std::fs::set_permissions(&private, std::fs::Permissions::from_mode(0o600)).unwrap();
    let key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAII7rbVTXuzdqCcEQVecSko8Qa0FpLI41pEakpPcSFBGD t";
    std::fs::write(folder.join("id.pub"), key).unwrap();
}
