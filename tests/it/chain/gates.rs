//! A signal while the gates after a link are asked of a provider that does not answer: the job is over
//! and at home, the pod runs and bills, and whoever waits there wants to be heard.

use super::{jobs, launched, lines, link, record, run};
use crate::flows::fixture::Fixture;
use crate::flows::signals::WAITS;
use crate::flows::supervised::Run;
use podtether::ops::Tether;
use rustix::process::Signal;
use std::fs;

/// A campaign whose first link is over, and whose gates cannot be asked for.
async fn at_its_gates() -> (Fixture, Tether, Run) {
    let links = format!(
        "  - {{name: one, command: '{WAITS}', max_runtime_sec: 60, max_usd: 1.5, gates: {{after: {{require: [go]}}}}}}\n  - {{name: two, command: 'echo 2 >>twos', max_runtime_sec: 60, max_usd: 1.5}}\n"
    );
    let (fixture, tether, mut run) = launched(&links).await;
    fixture.set_faults(&["edge-html=100000@on:read"]).await;
    fs::write(fixture.volume().join("go"), "").unwrap();
    run.says("gates after it: ").await;
    run.says("; asked again").await;
    (fixture, tether, run)
}

/// One Ctrl-C ends in order: the pod is stopped and read back, no link after it runs, and the link,
/// whose job is done, is judged and not run again by the next run.
#[tokio::test(flavor = "multi_thread")]
async fn sigint_at_the_gates_after_a_link_ends_in_order() {
    let (fixture, tether, mut at_gates) = at_its_gates().await;
    at_gates.signal(Signal::INT);
    at_gates.says("ending in order").await;
    fixture.set_faults(&[]).await;
    let outcome = at_gates.end().await;
    assert_eq!(outcome.code, 1, "{outcome:#?}");
    let found = record(&fixture, &outcome);
    assert_eq!((&found["state"], lines(&fixture, "twos")), (&"interrupted".into(), 0));
    assert_eq!(fixture.status().await, "EXITED");
    assert!(!fixture.path("logs/deadman.pid").exists(), "{outcome:#?}");
    fixture.running(&tether).await;
    let outcome = run(&fixture, &[]).await;
    assert_eq!(outcome.code, 0, "{outcome:#?}");
    assert_eq!(link(&outcome.summary, "one")["outcome"], "succeeded");
    assert_eq!((jobs(&fixture), lines(&fixture, "twos")), (2, 1));
}

/// SIGTERM leaves at once: the pod runs, its fuse stays, the record says both, and the same command goes
/// on from the gates.
#[tokio::test(flavor = "multi_thread")]
async fn sigterm_at_the_gates_after_a_link_leaves_at_once_and_says_that_the_pod_bills() {
    let (fixture, _tether, at_gates) = at_its_gates().await;
    at_gates.signal(Signal::TERM);
    let outcome = at_gates.end().await;
    assert_eq!(outcome.code, 6, "{outcome:#?}");
    let found = record(&fixture, &outcome);
    assert_eq!(
        (&found["state"], &found["pod_may_still_be_running"]),
        (&"left".into(), &true.into())
    );
    assert_eq!(link(&found, "one")["outcome"], "in_flight");
    assert!(outcome.stderr.contains("THE POD MAY STILL BE RUNNING AND BILLING"), "{outcome:#?}");
    assert!(fixture.path("logs/deadman.pid").exists());
    fixture.set_faults(&[]).await;
    assert_eq!(fixture.status().await, "RUNNING");
    let outcome = run(&fixture, &[]).await;
    assert_eq!(outcome.code, 0, "{outcome:#?}");
    assert_eq!((jobs(&fixture), lines(&fixture, "twos")), (2, 1));
    assert_eq!(fixture.status().await, "EXITED");
}
