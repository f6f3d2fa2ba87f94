//! Budgets: what they refuse reaches nobody, what a refusal promises holds, and nothing of it ever
//! stands in the way of a stop.

use super::fixture::{Fixture, VEHICLE, ensure};
use podtether::domain::{BudgetWindow, Usd};
use podtether::error::{Failure, FailureKind, StillBilling};
use podtether::ops::{EnsureRequest, RunJobRequest, StopStatus};

/// Sets the limits of a fixture's config, which a tether that is opened later reads.
fn limit(fixture: &Fixture, limits: &str) {
    let text = std::fs::read_to_string(fixture.config_file()).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with("limits:"));
    let lines =
        lines.filter(|line| !line.starts_with("  max_usd") && !line.starts_with("  budget_usd"));
    let rest: String = lines.map(|line| format!("{line}\n")).collect();
    std::fs::write(fixture.config_file(), format!("limits: {{{limits}}}\n{rest}")).unwrap();
}

fn job(max_runtime_sec: i64) -> RunJobRequest {
    RunJobRequest {
        name: "job".to_owned(),
        command: "touch ran".to_owned(),
        max_runtime_sec: Some(max_runtime_sec),
        ..RunJobRequest::default()
    }
}

/// The number that stands in a refusal after `before`.
fn number<'a>(failure: &'a Failure, before: &str) -> &'a str {
    let rest = failure.message.split_once(before).unwrap_or_else(|| panic!("{failure}")).1;
    rest.split_once(' ').unwrap().0
}

/// The sum that stands under the lines of a worst case, once they were added up.
fn sum(told: &[String]) -> Usd {
    let amount = |text: &str| {
        let number = text.strip_prefix('$').unwrap().split(' ').next().unwrap();
        Usd::from_decimal(number).unwrap()
    };
    let (last, lines) = told.split_last().unwrap();
    let sum = amount(last.strip_prefix("= ").unwrap());
    assert_eq!(lines.iter().map(|line| amount(line)).sum::<Usd>(), sum, "{told:?}");
    sum
}

#[tokio::test(flavor = "multi_thread")]
async fn a_create_over_the_budget_reaches_nobody_and_the_sum_that_is_told_passes() {
    let fixture = Fixture::new();
    limit(&fixture, "budget_usd: 0.5");
    let dry = EnsureRequest { dry_run: true, ..ensure(0) };
    for request in [dry.clone(), ensure(1)] {
        let failure = fixture.tether().await.ensure_pod(&request).await.unwrap_err();
        assert_eq!(
            (failure.kind, failure.still_billing),
            (FailureKind::Refused, StillBilling::No),
            "{failure}"
        );
        for part in
            ["boot, up to boot_max_sec (900 s)", "open-ended", "rover-volume", "spent so far"]
        {
            assert!(failure.message.contains(part), "{part}: {failure}");
        }
    }
    assert_eq!(fixture.changes(), []);
    let failure = fixture.tether().await.ensure_pod(&dry).await.unwrap_err();
    let enough =
        Usd::from_decimal(number(&failure, "limits.budget_usd = 0.50: limits.budget_usd = "));
    let enough = enough.unwrap();
    let short = Usd::from_micros(enough.micros() - 1);
    limit(&fixture, &format!("budget_usd: {}", short.to_decimal()));
    assert!(fixture.tether().await.ensure_pod(&dry).await.is_err());
    limit(&fixture, &format!("budget_usd: {}", enough.to_decimal()));
    let answer = fixture.tether().await.ensure_pod(&dry).await.unwrap();
    assert_eq!(sum(&answer.worst_case), enough);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_launch_is_held_to_both_limits_and_a_blown_budget_never_blocks_a_stop() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    let pod = fixture.running(&tether).await.pod.unwrap().id.0;
    let (sessions, changes) = (fixture.sessions(&pod).len(), fixture.changes().len());

    let refused = tether.run_job(&job(604_800)).await.unwrap_err();
    assert_eq!(refused.kind, FailureKind::Refused, "{refused}");
    let seconds: i64 = number(&refused, "max_runtime_sec=").parse().unwrap();
    // Some time is left for what the pod runs up while the test goes on.
    let dry = RunJobRequest { dry_run: true, ..job(seconds - 600) };
    let planned = tether.run_job(&dry).await.unwrap();
    assert_eq!(sum(&planned.worst_case), planned.worst_case_usd, "{planned:?}");
    assert!(planned.worst_case.len() >= 4, "{:?}", planned.worst_case);

    limit(&fixture, "max_usd_per_job: 1");
    let refused = fixture.tether().await.run_job(&job(3600)).await.unwrap_err();
    assert!(refused.message.contains("limits.max_usd_per_job = 1.00"), "{refused}");

    limit(&fixture, "max_usd_per_hour: 0.01, max_usd_per_job: 0.01, budget_usd: 0.000001");
    let tether = fixture.tether().await;
    let refused = tether.run_job(&job(1)).await.unwrap_err();
    assert_eq!((refused.kind, refused.still_billing), (FailureKind::Refused, StillBilling::Yes));
    for limit in ["max_usd_per_hour", "max_usd_per_job", "budget_usd"] {
        assert!(refused.message.contains(limit), "{limit}: {refused}");
    }
    assert!(!fixture.volume().join("ran").exists());
    assert_eq!(fixture.changes().len(), changes);
    let ran = fixture.sessions(&pod).into_iter().skip(sessions);
    let placed = ran.filter(|session| session.command.contains("place_file")).count();
    assert_eq!(placed, 0, "a refused launch places nothing");

    // A01: no limit stands in the way.
    let stopped = tether.stop_pod(VEHICLE).await.unwrap();
    assert_eq!((stopped.status, fixture.status().await.as_str()), (StopStatus::Stopped, "EXITED"));
}

/// I04: what the figures cover is said, and the budget counts the same.
#[tokio::test(flavor = "multi_thread")]
async fn the_spend_report_covers_the_budgets_window_and_says_so() {
    let fixture = Fixture::new();
    for (window, says) in [
        (BudgetWindow::Total, "since 2022"),
        (BudgetWindow::Month, "first of this month"),
        (BudgetWindow::Day, "since midnight"),
    ] {
        limit(&fixture, &format!("budget_usd: 5, budget_window: {window}"));
        let report = fixture.tether().await.spend_report().await.unwrap();
        assert_eq!((report.budget_window, report.from), (window, window.start(report.to)));
        assert!(report.covers.contains(says), "{}", report.covers);
    }
}
