//! What is billed, and what is said of a bill that is late or cannot be read.

use super::*;

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
