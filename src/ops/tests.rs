//! What the verbs say about the bill, against a scripted provider.

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

/// A bill that cannot be read, or only in part, refuses a spend under a budget and never a stop. What
/// a pod has run up is told by the catalog where the provider reports a running pod at no price
/// (runpod-python #438).
#[tokio::test]
async fn a_bill_that_cannot_be_read_refuses_a_create_and_no_stop() {
    let span = |total| BilledSpan {
        id: "pod9".into(),
        start: chrono::DateTime::UNIX_EPOCH,
        end: chrono::DateTime::UNIX_EPOCH + chrono::TimeDelta::hours(1),
        total,
        disk: None,
    };
    let budget = "limits: {budget_usd: 5}\n";
    let create = EnsureRequest { dry_run: true, ..EnsureRequest::default() };
    for bill in [Err(CloudErrorKind::Server), Ok(vec![span(None)])] {
        // What is older than the window, or than all of it, is not asked about and refuses nothing.
        let ancient = bill.is_ok();
        let scripted = || Scripted::new(vec![Ok(vec![])], vec![]).billing(bill.clone());
        let (tether, _, folder) = tether_with(scripted(), budget);
        write_key(folder.path());
        let answer = tether.ensure_pod(&create).await;
        assert_eq!(answer.is_ok(), ancient, "{answer:?}");
        let (tether, _, folder) = tether_with(scripted(), "");
        write_key(folder.path());
        assert!(tether.ensure_pod(&create).await.is_ok(), "without a budget nobody asks");
    }
    let now = SystemClock::new().now();
    let lately = BilledSpan { start: now, end: now + chrono::TimeDelta::hours(1), ..span(None) };
    let cloud = Scripted::new(vec![Ok(vec![])], vec![]).billing(Ok(vec![lately.clone()]));
    let (tether, _, folder) = tether_with(cloud, budget);
    write_key(folder.path());
    let refused = tether.ensure_pod(&create).await.unwrap_err();
    assert_eq!(refused.kind, FailureKind::Refused);
    assert!(refused.message.contains("no readable amount"), "{refused}");
    // The same account with our pod on it: it is stopped all the same.
    let cloud = Scripted::new(vec![with_status("RUNNING")], vec![with_status("EXITED")]);
    let (tether, cloud, _folder) = tether_with(cloud.billing(Ok(vec![lately])), budget);
    let answer = tether.stop_pod("hippocampus").await.unwrap();
    assert_eq!((answer.status, cloud.sent()), (StopStatus::Stopped, 1));

    let hour_ago = SystemClock::new().now() - chrono::TimeDelta::hours(1);
    let pod = Pod { price: Price::Unknown, started_at: Some(hour_ago), ..sample::pod() };
    let (tether, ..) = tether_with(Scripted::new(vec![Ok(vec![pod.clone()])], vec![]), budget);
    let bill = tether.bill(std::slice::from_ref(&pod)).await.unwrap();
    assert!((690_000..691_000).contains(&bill.running_usd.micros()), "{:?}", bill.running_usd);
    assert_eq!(bill.spent(), Spent::Known(bill.total()));
    let nameless = Pod { gpu: None, ..pod };
    let bill = tether.bill(&[nameless]).await.unwrap();
    assert!(matches!(bill.spent(), Spent::Unknown(_)));
}

fn write_key(folder: &std::path::Path) {
    let private = folder.join("id");
    std::fs::write(&private, "-----BEGIN OPENSSH PRIVATE KEY-----\n").unwrap();
    std::fs::set_permissions(&private, std::fs::Permissions::from_mode(0o600)).unwrap();
    let key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAII7rbVTXuzdqCcEQVecSko8Qa0FpLI41pEakpPcSFBGD t";
    std::fs::write(folder.join("id.pub"), key).unwrap();
}

/// An interface that is gone costs a figure and never the report.
#[tokio::test]
async fn a_spend_report_without_a_balance_says_why_and_is_whole_otherwise() {
    let lists = || vec![with_status("RUNNING")];
    let gone = Balance::Unknown("POST /graphql failed: gone".to_owned());
    let (tether, _, _folder) = tether(Scripted::new(lists(), vec![]).with_balance(gone));
    let report = tether.spend_report().await.unwrap();
    assert_eq!((report.balance_usd, report.runway_hours), (None, None));
    assert_eq!(report.balance_unknown.as_deref(), Some("POST /graphql failed: gone"));
    assert_eq!(report.usd_per_hour_now.micros(), 690_000);
    let credit = crate::domain::Usd::from_micros(1_380_000);
    let known = Balance::Known { usd: credit, per_hour: None, limit: None };
    let (tether, _, _folder) = self::tether(Scripted::new(lists(), vec![]).with_balance(known));
    let report = tether.spend_report().await.unwrap();
    assert_eq!((report.balance_usd, report.runway_hours), (Some(credit), Some(2.0)));
    assert_eq!(report.balance_unknown, None);
}

/// B06, B08: only a declared name makes a pod or volume a vehicle's; what is put up with bills too.
#[tokio::test]
async fn an_audit_tells_whose_everything_is_and_what_nobody_owns() {
    let pod = |id: &str, name: &str, word: &str| Pod {
        id: PodId(id.into()),
        name: name.into(),
        status: PodStatus::from(word),
        ..sample::pod()
    };
    let marker = (crate::plan::NewPod::NONCE_ENV.to_owned(), "01".to_owned());
    let pods = vec![
        pod("own", "lts-replication", "MIGRATING"),
        Pod { env: [marker].into(), ..pod("renamed", "lts-old", "RUNNING") },
        pod("friend", "a-friends", "RUNNING"),
        pod("stranger", "x", "ERROR"),
        // A stopped pod may keep a disk of its own; one on a network volume has none.
        Pod { mounts: vec![], ..pod("resting", "x", "EXITED") },
        pod("off", "x", "EXITED"),
        pod("gone", "x", "TERMINATED"),
    ];
    let mut cloud = Scripted::new(vec![Ok(pods)], vec![]);
    let other = crate::domain::VolumeId("vol2".into());
    cloud.volumes.push(crate::domain::Volume { id: other, name: "x".into(), ..sample::volume() });
    let (tether, _, _folder) = tether(cloud);
    let audit = tether.audit().await.unwrap();
    let owners: Vec<_> =
        audit.pods.iter().map(|pod| (pod.id.0.as_str(), pod.owner.clone())).collect();
    let own = Owner::Vehicle("hippocampus".into());
    let expected = [
        ("own", own.clone()),
        ("renamed", Owner::Marked),
        ("friend", Owner::Tolerated),
        ("stranger", Owner::Stranger),
        ("resting", Owner::Stranger),
        ("off", Owner::Stranger),
    ];
    assert_eq!(owners, expected);
    assert_eq!(audit.unowned, ["renamed", "friend", "stranger", "resting", "vol2"]);
    assert_eq!((&audit.volumes[0].owner, &audit.volumes[1].owner), (&own, &Owner::Stranger));
    assert_eq!(audit.usd_per_hour_now.micros(), 4 * 690_000);
    assert_eq!(audit.usd_per_month_at_rest.micros(), 2 * 4_200_000);

    let (tether, _, _folder) =
        self::tether(Scripted::new(vec![Err(CloudErrorKind::Server)], vec![]));
    assert_eq!(tether.audit().await.unwrap_err().still_billing, StillBilling::Unknown);
}

/// Records of the account's bill by the hour, `ago` hours before this one.
fn billed(id: &str, ago: i64) -> BilledSpan {
    use chrono::DurationRound as _;
    let hour = chrono::TimeDelta::hours(1);
    let start =
        SystemClock::new().now().duration_trunc(hour).unwrap() - hour * i32::try_from(ago).unwrap();
    let total = Some(crate::domain::Usd::from_micros(690_000));
    BilledSpan { id: id.into(), start, end: start + hour, total, disk: None }
}

/// I01: the API says it at once, the bill an hour later, and what nobody can read is no bill.
#[tokio::test]
async fn a_stopped_pod_is_graded_by_its_bill_when_that_has_come_so_far() {
    let started_at = Some(billed("", 5).start);
    let pod = Pod { status: PodStatus::Exited, started_at, ..sample::pod() };
    let told = async |bill| {
        let cloud = Scripted::new(vec![Ok(vec![pod.clone()])], vec![]).billing(bill);
        let (tether, _, _folder) = tether(cloud);
        let status = tether.pod_status(None).await.unwrap();
        let audit = tether.audit().await.unwrap();
        assert_eq!(status.grade, audit.pods[0].grade);
        assert_eq!((status.fuses.len(), status.unattended), (0, None), "nothing bills");
        let bill = status.evidence.iter().find(|known| known.field == "billing").unwrap();
        assert!(status.message.contains(&bill.value), "{}", status.message);
        (status.grade.unwrap(), bill.value.clone())
    };
    let own = || vec![billed("pod1", 5), billed("pod1", 4)];
    assert_eq!(told(Ok(own())).await.0, Grade::ApiSays);
    let later = [own(), vec![billed("pod9", 3)]].concat();
    let (grade, value) = told(Ok(later.clone())).await;
    assert_eq!(grade, Grade::BillingFlat);
    assert!(value.starts_with("no compute since the stop"), "{value}");
    let (grade, value) = told(Err(CloudErrorKind::Server)).await;
    assert!(grade == Grade::ApiSays && value.contains("could not be read"), "{value}");
}

/// A01: a stop says how much is known, and of every field where and when it was read.
#[tokio::test]
async fn a_stop_tells_its_grade_and_the_source_of_every_field() {
    let running = || with_status("RUNNING");
    for (look, grade) in [(with_status("EXITED"), Grade::ApiSays), (running(), Grade::Asked)] {
        let (tether, _, _folder) = tether(Scripted::new(vec![running()], vec![look]));
        let before = tether.clock().now();
        let answer = tether.stop_pod("hippocampus").await.unwrap();
        assert_eq!(answer.grade, grade);
        let fields: Vec<(&str, &str)> = answer
            .evidence
            .iter()
            .map(|known| (known.field.as_str(), known.source.as_str()))
            .collect();
        let [status, rate, volume] = fields[..] else { panic!("{fields:?}") };
        assert_eq!(status, ("status", "GET /v2/pods/pod1"));
        assert!(rate.0 == "rate" && rate.1.contains("before the stop"), "{rate:?}");
        assert!(volume.0 == "volume" && volume.1.contains("list price"), "{volume:?}");
        assert!(answer.evidence.iter().all(|known| known.at >= before && known.age_sec < 5));
    }
    let (tether, _, _folder) = tether(Scripted::new(vec![], vec![]));
    let answer = tether.stop_pod("hippocampus").await.unwrap();
    assert_eq!(
        (answer.grade, answer.evidence[0].source.as_str()),
        (Grade::ApiSays, "GET /v2/pods")
    );
}

/// A tether with a journal in which the create of the vehicle's pod was answered a moment ago.
fn after_a_create(cloud: Scripted) -> (Tether, Arc<Scripted>, tempfile::TempDir) {
    let (tether, cloud, folder) = tether(cloud);
    write_key(folder.path());
    let config = folder.path().join("podtether.yaml");
    let journal = folder.path().join("state");
    let ledger = crate::ledger::Ledger::new(journal, &config, SystemClock::shared());
    let action =
        crate::ledger::Action::CreatePod { name: "lts-replication".into(), nonce: "n".into() };
    let make = |id| crate::ledger::Event::Intend {
        id,
        vehicle: "hippocampus".into(),
        action,
        micros_per_hour: Some(690_000),
    };
    let id = ledger.intend(make).unwrap();
    let (pod, observed) = (Some(PodId("pod1".into())), "created, PROVISIONING".to_owned());
    ledger.append(crate::ledger::Event::Done { id, pod, observed }).unwrap();
    (tether.with_ledger(ledger), cloud, folder)
}

/// A05, B02 (campaigns 442, 506 and 601): a pod whose create was answered and that no list shows yet is
/// not made a second time, and nobody is told that there is none.
#[tokio::test]
async fn a_pod_that_no_list_shows_yet_is_neither_made_twice_nor_called_off() {
    let hidden = || Scripted::new(vec![Ok(vec![])], vec![]);
    let (tether, cloud, _folder) = after_a_create(hidden());
    let refused = tether.ensure_pod(&EnsureRequest::default()).await.unwrap_err();
    assert_eq!(
        (refused.kind, refused.still_billing, cloud.sent()),
        (FailureKind::Refused, StillBilling::Unknown, 0),
        "{refused}"
    );
    let answer = tether.stop_pod("hippocampus").await.unwrap();
    assert_eq!((answer.status, cloud.sent()), (StopStatus::StopUnconfirmed, 0));
    assert!(answer.message.contains("MAY BILL"), "{}", answer.message);
    let job = RunJobRequest { name: "x".into(), command: "true".into(), ..Default::default() };
    let failure = tether.run_job(&job).await.unwrap_err();
    assert_eq!((failure.kind, failure.still_billing), (FailureKind::NoPod, StillBilling::Unknown));
    let status = tether.pod_status(None).await.unwrap();
    assert_eq!(status.status, PodState::Unknown, "{}", status.message);

    // It answers to its id: then it is the pod that is gone on with, and that is stopped.
    let looks = || vec![with_status("STARTING")];
    let (tether, cloud, _folder) = after_a_create(Scripted::new(vec![Ok(vec![])], looks()));
    let answer = tether.ensure_pod(&EnsureRequest::default()).await.unwrap();
    assert_eq!((answer.status, cloud.sent()), (Some(EnsureStatus::StillInitializing), 0));
    let looks = vec![with_status("RUNNING"), with_status("EXITED")];
    let (tether, cloud, _folder) = after_a_create(Scripted::new(vec![Ok(vec![])], looks));
    let answer = tether.stop_pod("hippocampus").await.unwrap();
    assert_eq!((answer.status, cloud.sent()), (StopStatus::Stopped, 1));
}

/// Campaigns 3746 and 4371: a list that is older than a start shows EXITED; only the pod's own page
/// says that it is off.
#[tokio::test]
async fn a_list_that_is_older_than_a_start_calls_no_pod_off() {
    let old = || vec![with_status("EXITED")];
    let looks = vec![with_status("RUNNING"), with_status("EXITED")];
    let (tether, cloud, _folder) = tether(Scripted::new(old(), looks));
    let answer = tether.stop_pod("hippocampus").await.unwrap();
    assert_eq!((answer.status, cloud.sent()), (StopStatus::Stopped, 1));
    // Its page cannot be read: it is asked to stop, and what was not read is not said.
    let silent = vec![Err(CloudErrorKind::Server)];
    let (tether, cloud, _folder) = self::tether(Scripted::new(old(), silent));
    let answer = tether.stop_pod("hippocampus").await.unwrap();
    assert_eq!(answer.status, StopStatus::StopUnconfirmed);
    assert!(cloud.sent() > 0);
    let failure = tether.running_pod(&tether.vehicle(None).unwrap()).await.unwrap_err();
    assert_eq!((failure.kind, failure.still_billing), (FailureKind::NoPod, StillBilling::Unknown));
    // An old page is none: the pod that runs is the running pod.
    let (tether, ..) = self::tether(Scripted::new(old(), vec![with_status("RUNNING")]));
    assert!(tether.running_pod(&tether.vehicle(None).unwrap()).await.is_ok());
}

/// Campaign 2208: a start that is refused as not valid any more may have been made by somebody else.
#[tokio::test]
async fn a_start_that_is_in_conflict_leaves_open_what_bills() {
    let exited = || vec![with_status("EXITED")];
    let cloud = Scripted::new(exited(), exited()).answering(vec![Err(CloudErrorKind::Conflict)]);
    let (tether, cloud, folder) = tether(cloud);
    write_key(folder.path());
    let failure = tether.ensure_pod(&EnsureRequest::default()).await.unwrap_err();
    assert_eq!((failure.still_billing, cloud.sent()), (StillBilling::Unknown, 1));
}

/// A volume whose create was lost, or whose session died while it asked, may come late: one more of its
/// name would block the vehicle, and bill.
#[tokio::test]
async fn a_volume_that_may_come_late_is_not_made_twice() {
    for answer_was_lost in [true, false] {
        let scripted = Scripted::new(vec![Ok(vec![])], vec![]).without_volumes();
        let (tether, cloud, folder) = tether(scripted);
        write_key(folder.path());
        let config = folder.path().join("podtether.yaml");
        let journal = folder.path().join("state");
        let ledger = crate::ledger::Ledger::new(journal, &config, SystemClock::shared());
        let action = crate::ledger::Action::CreateVolume { name: "lts-volume".into() };
        let vehicle = "hippocampus".to_owned();
        let make = |id| crate::ledger::Event::Intend { id, vehicle, action, micros_per_hour: None };
        let id = ledger.intend(make).unwrap();
        if answer_was_lost {
            let error = "no answer in time".to_owned();
            let failed = crate::ledger::Event::Failed { id, error, may_have_taken_effect: true };
            ledger.append(failed).unwrap();
        }
        let tether = tether.with_ledger(ledger);
        let refused = tether.ensure_pod(&EnsureRequest::default()).await.unwrap_err();
        assert_eq!((refused.kind, cloud.sent()), (FailureKind::Refused, 0), "{refused:?}");
        assert_eq!(refused.still_billing, StillBilling::Unknown);
        assert!(refused.message.contains("network volume was sent"), "{refused:?}");
    }
}

/// A05: a start whose answer was lost, and a list that is older than it: the pod's own page says that it
/// bills, and what it was promised is not given back. A page that says EXITED is believed only when the
/// request can no longer be on its way.
#[tokio::test]
async fn an_old_list_does_not_settle_a_start_as_off() {
    let (young, settled) = (Duration::from_secs(120), Duration::ZERO);
    for (page, absent_after, open, is_on) in
        [("RUNNING", young, 0, true), ("EXITED", young, 1, false), ("EXITED", settled, 0, false)]
    {
        let cloud = Scripted::new(vec![with_status("EXITED")], vec![with_status(page)]);
        let (tether, _, folder) = tether(cloud);
        let settings = Settings { absent_after, ..tether.settings };
        let tether = tether.with_settings(settings);
        let config = folder.path().join("podtether.yaml");
        let journal = folder.path().join("state");
        let ledger = crate::ledger::Ledger::new(journal, &config, SystemClock::shared());
        let pod = PodId("pod1".into());
        let action = crate::ledger::Action::StartPod { pod: pod.clone() };
        // Another vehicle's, whose pod nobody looks at otherwise.
        let vehicle = "another".to_owned();
        let make = |id| crate::ledger::Event::Intend { id, vehicle, action, micros_per_hour: None };
        ledger.intend(make).unwrap();
        let tether = tether.with_ledger(ledger);
        let mut facts = tether.gather(super::gather::Needs::default()).await.unwrap();
        tether.reconcile(&mut facts).await.unwrap();
        let book = tether.ledger.as_ref().unwrap().book().unwrap();
        assert_eq!(
            (book.open_intents().len(), book.open_run(&pod).is_some()),
            (open, is_on),
            "{page}"
        );
    }
}

/// A05, A22: a start whose answer was lost may take effect after a look that shows EXITED: until it can no
/// longer be on its way, nobody is told that nothing bills.
#[tokio::test]
async fn a_stop_beside_a_start_of_unknown_outcome_is_not_confirmed() {
    for (absent_after, status) in [
        (Duration::from_secs(120), StopStatus::StopUnconfirmed),
        (Duration::ZERO, StopStatus::AlreadyStopped),
    ] {
        let exited = || vec![with_status("EXITED")];
        let cloud = Scripted::new(exited(), exited());
        let (tether, _, folder) = tether(cloud.answering(vec![Err(CloudErrorKind::Server)]));
        write_key(folder.path());
        let settings = Settings { absent_after, ..tether.settings };
        let config = folder.path().join("podtether.yaml");
        let journal = folder.path().join("state");
        let ledger = crate::ledger::Ledger::new(journal, &config, SystemClock::shared());
        let tether = tether.with_settings(settings).with_ledger(ledger);
        let failure = tether.ensure_pod(&EnsureRequest::default()).await.unwrap_err();
        assert_eq!(failure.still_billing, StillBilling::Unknown, "{failure}");
        let answer = tether.stop_pod("hippocampus").await.unwrap();
        assert_eq!(answer.status, status, "{}", answer.message);
        let may_bill = answer.message.contains("MAY BILL");
        assert_eq!(may_bill, status == StopStatus::StopUnconfirmed, "{}", answer.message);
    }
}

/// A clock that stands still.
struct At(chrono::DateTime<chrono::Utc>);

impl crate::clock::Clock for At {
    fn now(&self) -> chrono::DateTime<chrono::Utc> {
        self.0
    }

    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }
}

/// B01, I05: a boot whose answer was lost is given up like any other, counted from its request, or from when
/// it was found where that is long ago.
#[tokio::test]
async fn a_boot_that_was_found_later_is_noted_as_one() {
    for minutes in [5, 60] {
        let nonce = (crate::plan::NewPod::NONCE_ENV.to_owned(), "n".to_owned());
        let pod = Pod { env: [nonce].into(), ssh: None, ..sample::pod() };
        let shown = || vec![Ok(vec![pod.clone()])];
        let (tether, _, folder) = tether(Scripted::new(shown(), shown()));
        write_key(folder.path());
        let config = folder.path().join("podtether.yaml");
        let journal = folder.path().join("state");
        let asked_at = SystemClock::new().now() - chrono::TimeDelta::minutes(minutes);
        let action =
            crate::ledger::Action::CreatePod { name: "lts-replication".into(), nonce: "n".into() };
        let vehicle = "hippocampus".to_owned();
        let make = |id| crate::ledger::Event::Intend { id, vehicle, action, micros_per_hour: None };
        let clock = Arc::new(At(asked_at));
        crate::ledger::Ledger::new(journal.clone(), &config, clock).intend(make).unwrap();
        let ledger = crate::ledger::Ledger::new(journal, &config, SystemClock::shared());
        let tether = tether.with_ledger(ledger);
        let answer = tether.ensure_pod(&EnsureRequest::default()).await.unwrap();
        assert_eq!(answer.status, Some(EnsureStatus::StillInitializing), "{}", answer.message);
        let noted = boot::pending(&tether.vehicle(None).unwrap(), &pod.id).unwrap();
        assert_eq!(noted.asked_at == asked_at, minutes == 5, "{noted:?}");
    }
}
