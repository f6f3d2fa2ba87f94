//! A stop with and without a config, against a scripted provider.

use super::*;
use crate::apply::OffSettings;
use crate::clock::SystemClock;
use crate::cloud::CloudErrorKind;
use crate::cloud::scripted::{Look, Scripted};
use crate::config::Environment;
use crate::domain::{PodStatus, sample};
use crate::plan::{Change, NewPod};
use std::time::Duration;

const CONFIG: &str = "\
cloud: runpod
ssh_identity: id
vehicles:
  hippocampus:
    pod_name: lts-replication
    network_volume_name: lts-volume
    datacenter_preference: [EU-RO-1]
    known_hosts_file: known_hosts
    local_log_dir: logs
  auv:
    pod_name: auv-pod
    network_volume_name: auv-volume
    datacenter_preference: [EU-RO-1]
    known_hosts_file: known_hosts_auv
    local_log_dir: logs_auv
";

fn stop(config: Option<&str>, cloud: Scripted) -> (StopAll, Arc<Scripted>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("podtether.yaml");
    std::fs::write(&path, config.unwrap_or("vehicles: [")).unwrap();
    let env = Environment::isolated([("HOME", folder.path())]);
    let cloud = Arc::new(cloud);
    let off = OffSettings {
        budget: Duration::from_millis(100),
        read_every: Duration::from_millis(2),
        ask_again_after: Duration::from_millis(20),
    };
    let config = crate::config::load(&path, &env);
    let port = Arc::clone(&cloud) as Arc<dyn Cloud>;
    let stop = StopAll::new(config, port, SystemClock::shared())
        .with_settings(Settings { off, ..Settings::default() });
    (stop, cloud)
}

fn pod(id: &str, name: &str, status: &str, is_marked: bool) -> Pod {
    let marker = is_marked.then(|| (NewPod::NONCE_ENV.to_owned(), "0123".to_owned()));
    Pod {
        id: PodId(id.into()),
        name: name.into(),
        status: PodStatus::from(status),
        env: marker.into_iter().collect(),
        ..sample::pod()
    }
}

fn sent(cloud: &Scripted) -> Vec<String> {
    let sent = cloud.sent.lock().unwrap();
    let stopped = |change: &Change| match change {
        Change::StopPod(id) => id.0.clone(),
        other => panic!("{other:?}"),
    };
    sent.iter().map(stopped).collect()
}

/// The account as it is before, and as it is once every pod was stopped.
fn account(pods: &[Pod]) -> (Vec<Look>, Vec<Look>) {
    let exited = |pod: &Pod| Pod { status: PodStatus::Exited, ..pod.clone() };
    (vec![Ok(pods.to_vec())], vec![Ok(pods.iter().map(exited).collect())])
}

/// B08: without a config the marker alone says what is ours; a name proves nothing.
#[tokio::test]
async fn without_a_config_only_pods_with_the_marker_are_stopped() {
    let pods = [
        pod("ours", "lts-replication", "RUNNING", true),
        pod("namesake", "lts-replication", "RUNNING", false),
        pod("old", "auv-pod", "EXITED", true),
        pod("gone", "auv-pod", "TERMINATED", true),
    ];
    let (lists, looks) = account(&pods);
    let (stop, cloud) = self::stop(None, Scripted::new(lists, looks));
    let answer = stop.run().await.unwrap();
    assert_eq!(sent(&cloud), ["ours"]);
    let told: Vec<_> = answer
        .pods
        .iter()
        .map(|pod| (pod.pod.0.as_str(), pod.off, pod.status.as_deref()))
        .collect();
    assert_eq!(told, [("ours", true, Some("EXITED")), ("old", true, Some("EXITED"))]);
    assert!(answer.without_config.is_some() && answer.pods.iter().all(|pod| pod.vehicle.is_none()));
    let left = answer.left_alone.unwrap();
    assert_eq!((left.len(), left[0].pod.0.as_str(), left[0].bills), (1, "namesake", true));
    assert!(left[0].why.contains("marker"), "{}", left[0].why);
    // Nobody can say that the namesake is not the vehicle's.
    assert!(answer.may_still_bill);

    let (lists, looks) = account(&[pods[0].clone(), pod("x", "y", "EXITED", false)]);
    let (stop, _) = self::stop(None, Scripted::new(lists, looks));
    assert!(!stop.run().await.unwrap().may_still_bill);
}

#[tokio::test]
async fn with_a_config_the_pods_of_every_declared_name_are_stopped_and_no_other() {
    let pods = [
        pod("one", "lts-replication", "RUNNING", false),
        pod("two", "lts-replication", "STARTING", true),
        pod("three", "auv-pod", "MIGRATING", false),
        pod("stranger", "somebody-elses", "RUNNING", false),
        pod("renamed", "auv-old", "RUNNING", true),
    ];
    let (lists, looks) = account(&pods);
    let (stop, cloud) = self::stop(Some(CONFIG), Scripted::new(lists.clone(), looks.clone()));
    let answer = stop.run().await.unwrap();
    let mut stopped = sent(&cloud);
    stopped.sort();
    assert_eq!(stopped, ["one", "three", "two"]);
    assert!(!answer.may_still_bill && answer.without_config.is_none(), "{answer:#?}");
    assert!(answer.pods.iter().all(|pod| pod.off && pod.asked == 1 && pod.read_at.is_some()));
    let left = answer.left_alone.unwrap();
    assert_eq!(
        left.iter().map(|pod| pod.pod.0.as_str()).collect::<Vec<_>>(),
        ["stranger", "renamed"]
    );
    assert!(!left[0].why.contains("podtether") && left[1].why.contains("podtether created it"));

    // One vehicle is that vehicle alone.
    let (stop, cloud) = self::stop(Some(CONFIG), Scripted::new(lists, looks));
    let answer = stop.run_one("auv").await.unwrap();
    assert_eq!((sent(&cloud), answer.left_alone), (vec!["three".to_owned()], None));
    let failure = stop.run_one("hippocampsu").await.unwrap_err();
    assert!(failure.message.contains("hippocampus"), "{failure}");
}

/// A01: what was not read back is never called off, and one pod that will not stop hides no other.
#[tokio::test]
async fn a_stop_that_is_not_read_back_may_still_bill() {
    let pods =
        [pod("one", "lts-replication", "RUNNING", false), pod("two", "auv-pod", "RUNNING", false)];
    let after =
        vec![Ok(vec![pods[0].clone(), Pod { status: PodStatus::Exited, ..pods[1].clone() }])];
    let (stop, cloud) = self::stop(Some(CONFIG), Scripted::new(vec![Ok(pods.to_vec())], after));
    let answer = stop.run().await.unwrap();
    assert!(answer.may_still_bill && sent(&cloud).len() >= 2);
    assert_eq!(answer.pods.iter().map(|pod| pod.off).collect::<Vec<_>>(), [false, true]);
    assert!(answer.pods[0].message.contains("MAY STILL BILL"), "{:?}", answer.pods[0]);
    assert_eq!(answer.pods[0].status.as_deref(), Some("RUNNING"));
}

/// A05: a list that does not show a pod, or fails, is asked again before anything is said.
#[tokio::test]
async fn a_pod_that_one_list_hides_is_stopped_all_the_same() {
    let ours = pod("ours", "lts-replication", "RUNNING", true);
    let looks = account(std::slice::from_ref(&ours)).1;
    let server = CloudErrorKind::Server;
    let lists = vec![Err(server.clone()), Ok(vec![]), Ok(vec![ours])];
    for config in [None, Some(CONFIG)] {
        let (stop, cloud) = self::stop(config, Scripted::new(lists.clone(), looks.clone()));
        let answer = stop.run().await.unwrap();
        assert_eq!((sent(&cloud), answer.may_still_bill), (vec!["ours".to_owned()], false));
        assert_eq!(answer.no_pod.len(), usize::from(config.is_some()));
    }
    let (stop, cloud) = self::stop(Some(CONFIG), Scripted::new(vec![Err(server)], looks));
    let failure = stop.run().await.unwrap_err();
    assert_eq!((failure.still_billing, cloud.sent()), (StillBilling::Unknown, 0));
}

/// A05: a list that is older than a start shows EXITED. Only the pod's own page says that it is off,
/// and one that cannot be read is asked to stop.
#[tokio::test]
async fn a_list_that_is_older_than_a_start_calls_no_pod_off() {
    let old = || vec![Ok(vec![pod("ours", "lts-replication", "EXITED", true)])];
    let page = |status| Ok(vec![pod("ours", "lts-replication", status, true)]);
    let looks = vec![page("RUNNING"), page("EXITED")];
    let (stop, cloud) = self::stop(Some(CONFIG), Scripted::new(old(), looks));
    let answer = stop.run_one("hippocampus").await.unwrap();
    assert_eq!((sent(&cloud), answer.pods[0].off), (vec!["ours".to_owned()], true));
    let silent = vec![Err(CloudErrorKind::Server)];
    let (stop, cloud) = self::stop(Some(CONFIG), Scripted::new(old(), silent));
    let answer = stop.run_one("hippocampus").await.unwrap();
    assert!(!sent(&cloud).is_empty() && answer.may_still_bill, "{answer:?}");
}
