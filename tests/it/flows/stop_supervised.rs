//! The stop at the end of a supervised run, when the provider is in the way.

use super::fixture::{Fixture, Request};
use super::signals::WAITS;
use super::supervised::Run;
use rustix::process::Signal;
use serde_json::json;

/// A01: nothing that is sent to stop the pod arrives. It is asked again, over more than one try, until
/// the way is free, and only then, with EXITED read, is the run over.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_whose_stop_does_not_arrive_goes_on_until_it_does() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    fixture.set_faults(&["request-lost=100000@on:stop"]).await;
    let mut run = Run::of(&fixture, "true", &["--stop-budget-sec", "1"]);
    run.says("the provider could not be reached").await;
    let asked = || fixture.changes().iter().filter(|it| it.body["action"] == "stop").count();
    let first = asked();
    fixture.until("another try", async || asked() > first).await;
    fixture.set_faults(&[]).await;
    let outcome = run.end().await;
    assert_eq!(outcome.code, 0, "{outcome:#?}");
    let summary = outcome.file();
    let told = ["state", "pod_may_still_be_running", "stop_escalated"];
    let told = told.map(|key| summary[key].clone());
    assert_eq!(json!(told), json!(["succeeded", false, true]));
    assert_eq!(summary["stop"]["status"], "stopped");
    assert_eq!(fixture.status().await, "EXITED");
    assert_eq!(summary["errors"][0]["step"], "stop", "the tries in vain are on record");
}

/// The first Ctrl-C asks for an orderly end, also of a run that is in the middle of one: it goes on to
/// the stop. The second leaves.
#[tokio::test(flavor = "multi_thread")]
async fn a_first_interrupt_while_the_pod_is_being_stopped_ends_in_that_stop() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    for (interrupts, code) in [(1, 0), (2, 6)] {
        fixture.running(&tether).await;
        fixture.set_faults(&["request-lost=100000@on:stop"]).await;
        let mut run = Run::of(&fixture, "true", &["--stop-budget-sec", "1"]);
        run.says("the provider could not be reached").await;
        run.signal(Signal::INT);
        run.says("the end in order is under way").await;
        if interrupts == 2 {
            run.signal(Signal::INT);
        } else {
            fixture.set_faults(&[]).await;
        }
        let outcome = run.end().await;
        assert_eq!(outcome.code, code, "{outcome:#?}");
        fixture.set_faults(&[]).await;
        assert_eq!(fixture.status().await, if code == 0 { "EXITED" } else { "RUNNING" });
    }
}

/// A02, A07: a key that may not stop any more. The run ends soon, loudly and with 6, and never says "stopped".
#[tokio::test(flavor = "multi_thread")]
async fn a_run_whose_stop_is_refused_ends_with_exit_code_6_and_the_reason() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    let mut run = Run::of(&fixture, WAITS, &["--stop-budget-sec", "1"]);
    run.says("launched:").await;
    fixture.set_faults(&["read-only-key"]).await;
    std::fs::write(fixture.volume().join("go"), "").unwrap();
    let outcome = run.end().await;
    assert_eq!(outcome.code, 6, "{outcome:#?}");
    let summary = outcome.file();
    let told = ["process_exit_code", "pod_may_still_be_running"].map(|key| summary[key].clone());
    assert_eq!(json!(told), json!([6, true]));
    assert_eq!(summary["stop"]["status"], "stop_unconfirmed");
    assert!(outcome.stderr.contains("the API key may not stop this pod"), "{}", outcome.stderr);
    let is_stop = |change: &&Request| {
        change.body["action"] == "stop" && !change.path.contains("podtetherprobe")
    };
    let asked = fixture.changes().iter().filter(is_stop).count();
    assert_eq!(asked, 5, "a refusal is asked a few times over and not for half an hour");
    fixture.set_faults(&[]).await;
    assert_eq!(fixture.status().await, "RUNNING");
}
