//! A laptop that sleeps while it follows a job: its wall clock goes on, the monotonic one does not.

use super::fixture::Fixture;
use super::signals::WAITS;
use chrono::{DateTime, TimeDelta, Utc};
use podtether::clock::{Clock, SharedClock, SystemClock};
use podtether::notify::Notifier;
use podtether::ops::RunJobRequest;
use podtether::supervise::{self, Note, Options, Summary};
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::time::Duration;

/// The machine's clocks, as they are after so many seconds of sleep.
pub struct Sleeper {
    pub clock: SystemClock,
    pub slept_sec: AtomicI64,
}

impl Clock for Sleeper {
    fn now(&self) -> DateTime<Utc> {
        self.clock.now() + TimeDelta::seconds(self.slept_sec.load(Relaxed))
    }

    fn monotonic(&self) -> Duration {
        self.clock.monotonic()
    }
}

/// Follows a job with an interval of ten minutes and sleeps for so long once it runs; then, when
/// `goes`, the job ends. What was said, and the summary.
async fn slept_for(fixture: &Fixture, sec: i64, goes: bool) -> (String, Summary) {
    let sleeper = Arc::new(Sleeper { clock: SystemClock::new(), slept_sec: AtomicI64::new(0) });
    let tether = fixture.tether_on(Arc::clone(&sleeper) as SharedClock).await;
    fixture.running(&tether).await;
    let options = Options {
        job: RunJobRequest {
            name: "job".into(),
            command: WAITS.into(),
            ..RunJobRequest::default()
        },
        interval: Duration::from_secs(600),
        max_wait: Some(Duration::from_secs(3_000)),
        backstop: Duration::ZERO,
        no_stop: false,
        sync_subdir: None,
        pull_every: supervise::PULL_EVERY,
        notifier: Notifier::silent(),
        summary_path: None,
    };
    let (_keep, mut signals) = tokio::sync::mpsc::unbounded_channel();
    let mut said = String::new();
    let go = fixture.volume().join("go");
    let (mut looks, mut sleeps) = (0, false);
    let mut tell = |note: Note| match note {
        Note::Said(text) => said.push_str(&format!("{text}\n")),
        Note::Progress { .. } => {
            looks += 1;
            if !sleeps {
                sleeps = true;
                sleeper.slept_sec.store(sec, Relaxed);
            } else if goes {
                // The look after the sleep, long before an interval is over.
                fs::write(&go, "").unwrap();
            }
        }
        Note::Pulling(_) => {}
    };
    let run = supervise::run(&tether, &options, &mut signals, &mut tell);
    let run = tokio::time::timeout(super::twin::CEILING, run).await;
    let (summary, _) = run.expect("it waited out its interval");
    (said, summary)
}

/// C03: it says for how long, writes it down and looks at once, with minutes of its interval left.
#[tokio::test(flavor = "multi_thread")]
async fn on_waking_it_says_for_how_long_and_looks_at_once() {
    let fixture = Fixture::new();
    let (said, summary) = slept_for(&fixture, 1_200, true).await;
    assert!(said.contains("this computer slept for 20 min"), "{said}");
    assert!(said.contains("if this laptop sleeps: "), "{said}");
    assert_eq!((summary.process_exit_code, summary.slept_for_sec), (Some(0), 1_200), "{said}");
}

/// C02: the deadline is a time of day. Whoever sleeps past it ends the run on waking.
#[tokio::test(flavor = "multi_thread")]
async fn a_sleep_past_the_deadline_ends_the_run_on_waking() {
    let fixture = Fixture::new();
    let (said, summary) = slept_for(&fixture, 9 * 3_600, false).await;
    assert_eq!((summary.process_exit_code, summary.slept_for_sec), (Some(1), 9 * 3_600), "{said}");
    assert!(summary.force_stopped, "{said}");
    assert_eq!(fixture.status().await, "EXITED");
}
