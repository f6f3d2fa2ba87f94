//! Creates and starts whose answer or whose pod is not seen yet.

use super::*;

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
