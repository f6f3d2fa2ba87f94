use super::super::model::{Fixed, Model};
use super::draw;
use crate::domain::{
    FuseName, FuseReport, FuseState, JobState, Price, Usd, UsdPerHour, longest_unattended,
};
use crate::ops::{CloudName, PodSight, Resume, WatchNote, WatchSight, WatchSpec, WatchStatus};
use crate::watch::state::State;
use crate::watch::{FailureCause, Finding, PlateauRule, ReadingState, Verdict};
use chrono::{DateTime, TimeDelta, Utc};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use std::time::Duration;

const fn sec(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// 12:00:00 and so many seconds.
fn at(seconds: i64) -> DateTime<Utc> {
    let noon: DateTime<Utc> = "2026-07-03T12:00:00Z".parse().unwrap();
    noon + TimeDelta::seconds(seconds)
}

fn model() -> Model {
    Model::new(Fixed {
        vehicle: "rover".to_owned(),
        is_local: true,
        interval: sec(60),
        stall: sec(600),
    })
}

fn status(iteration: u64) -> WatchStatus {
    WatchStatus {
        cloud: CloudName::Local,
        job_id: Some("20260703-110000_train_ab12".to_owned()),
        spec: WatchSpec {
            vehicle: "rover".to_owned(),
            interval: 60,
            startup_grace: 180,
            stall_sec: 600,
            plateau: PlateauRule::default(),
        },
        iteration: Some(iteration),
        total_iterations: Some(500),
        mean_reward: Some(12.5),
        trend: Some(1.25),
        plateau_fired: false,
        failure_detected: None,
        exit_code_artifact: None,
        gone_from_active: false,
        stalled: false,
        quiet: false,
        offset_bytes: 0,
        artifacts: None,
        verdict: None,
        started_at: at(-600),
        updated_at: at(0),
        ended_at: None,
        process_exit_code: None,
        status_path: None,
        unwritten: Default::default(),
        resume: Resume {
            state: State::new(at(-600), true),
            reading: ReadingState::default(),
            read_to: 0,
            at: None,
        },
    }
}

fn fuse(name: FuseName, state: FuseState, within: Option<u64>) -> FuseReport {
    FuseReport {
        stops_within_sec: within,
        ..FuseReport::without_proof(name, state, "process 7 is gone".to_owned())
    }
}

fn sight(points: &[(u64, f64)]) -> WatchSight {
    let rate = UsdPerHour::new(Usd::from_micros(690_000));
    let fuses = vec![
        fuse(FuseName::Supervise, FuseState::Dead, None),
        fuse(FuseName::Watchdog, FuseState::Unproven, Some(1800)),
        fuse(FuseName::Deadman, FuseState::Armed, Some(7200)),
    ];
    WatchSight {
        at: at(0),
        job: JobState::Running,
        points: points.to_vec(),
        log: (1..=9).map(|line| format!("log line {line}")).collect(),
        log_age: Some(sec(3)),
        eta: Some(sec(3723)),
        pod: PodSight {
            id: "pod1".to_owned(),
            gpu_percent: Some(93),
            gpu_memory_mib: Some(8_192),
            rate: Some(rate),
            since: Some(at(-3600)),
            unattended: longest_unattended(Price::Known(rate), &fuses),
            fuses,
        },
    }
}

/// A run of which everything is known.
fn known() -> Model {
    let mut model = model();
    let points: Vec<(u64, f64)> =
        (0..=249_u32).map(|at| (u64::from(at), f64::from(at).sqrt())).collect();
    model.take(WatchNote::Saw(Box::new(sight(&points))), at(0));
    model.take(WatchNote::Round(Box::new(status(249))), at(0));
    model.take(WatchNote::Said("the provider says RUNNING".to_owned()), at(5));
    model
}

fn shown(model: &Model, size: (u16, u16), now: DateTime<Utc>) -> String {
    let mut terminal = Terminal::new(TestBackend::new(size.0, size.1)).unwrap();
    terminal.draw(|frame| draw(frame, model, now)).unwrap();
    let buffer = terminal.backend().buffer();
    let rows = buffer.content().chunks(usize::from(size.0));
    let rows = rows.map(|row| row.iter().map(|cell| cell.symbol()).collect::<String>());
    rows.map(|row| format!("{}\n", row.trim_end())).collect()
}

/// Compares a picture with one that was looked at, row by row.
fn assert_shows(shown: &str, expected: &[&str]) {
    let shown: Vec<&str> = shown.lines().collect();
    assert_eq!(shown, expected, "\n{}", shown.join("\n"));
}

#[test]
fn a_run_of_which_everything_is_known_fills_a_usual_terminal() {
    assert_shows(
        &shown(&known(), (80, 24), at(10)),
        &[
            "podtether watch · rover · local cloud, $0                           12:00:10 UTC",
            "running · job 20260703-110000_train_ab12",
            "iteration 249/500 · 50 % ██████████░░░░░░░░░░ · 1:01:50 left",
            "mean reward 12.50 (+1.25 over 50) ──────────────────────────────────────────────",
            "15.78│                                                 ⣀⣀⣀⣀⣀⣀⡠⠤⠤⠤⠤⠤⠤⠴⠒⠒⠒⠒⠒⠒⠒⠉⠉⠉⠉",
            "     │                           ⣀⣀⣀⣀⣀⠤⠤⠤⠤⠤⠖⠒⠒⠒⠒⠒⠋⠉⠉⠉⠉⠉",
            "     │           ⢀⣀⣀⣀⠤⠤⠤⠴⠒⠒⠒⠚⠉⠉⠉⠉⠁",
            "     │  ⢀⣀⡤⠤⠖⠒⠒⠉⠉⠁",
            "0.00 │⡰⠊⠉",
            "     └──────────────────────────────────────────────────────────────────────────",
            "     0                                                                       249",
            "GPU 93 %, 8.0 GB · log 13 s old (stall at 10:00)",
            "$0.69 since its start · $0.69/h · pod pod1",
            "deadman armed: off within 1:59:50, $1.38, 14:00:00 UTC",
            "watchdog UNPROVEN: off within 29:50, $0.34, 12:30:00 UTC",
            "supervise is DEAD: process 7 is gone",
            "12:00:05 the provider says RUNNING",
            "log ────────────────────────────────────────────────────────────────────────────",
            "log line 5",
            "log line 6",
            "log line 7",
            "log line 8",
            "log line 9",
            "q leaves the watch; the job and the pod go on                  next look in 50 s",
        ],
    );
}

/// 40 x 10: each thing has one line, and the most important words of it are there.
#[test]
fn a_small_terminal_shows_one_line_of_each() {
    assert_shows(
        &shown(&known(), (40, 10), at(10)),
        &[
            "running · job 20260703-110000_train_ab12",
            "iteration 249/500 · 50 % · 1:01:50 left",
            "mean reward 12.50 (+1.25 over 50)",
            "          ⣀⣀⣀⣀⣀⣀⡠⠤⠤⠤⠤⠤⠤⠤⠴⠒⠒⠒⠒⠒⠒⠒⠒⠒⠋⠉⠉⠉⠉⠉",
            "⡠⠤⠒⠒⠒⠋⠉⠉⠉⠉⠁",
            "GPU 93 %, 8.0 GB · log 13 s old (stall a",
            "$0.69 since its start · $0.69/h · pod po",
            "deadman armed: off within 1:59:50, $1.38",
            "12:00:05 the provider says RUNNING",
            "log line 9",
        ],
    );
}

#[test]
fn what_is_not_known_is_not_made_up() {
    let shown = shown(&model(), (80, 24), at(0));
    for words in ["not looked at yet", "looking for a live job", "no numbers yet", "no reward yet"]
    {
        assert!(shown.contains(words), "{words}:\n{shown}");
    }
    assert!(!shown.contains("$0."), "{shown}");
}

/// A06: a price that nobody knows is not shown as none; a pod that nothing stops is said to be one.
#[test]
fn an_unknown_price_and_a_pod_without_a_fuse_are_said() {
    let mut model = model();
    let mut sight = sight(&[]);
    sight.pod.rate = None;
    sight.pod.fuses = vec![fuse(FuseName::Deadman, FuseState::Off, None)];
    model.take(WatchNote::Saw(Box::new(sight)), at(0));
    for size in [(80, 24), (40, 10)] {
        let shown = shown(&model, size, at(0));
        assert!(shown.contains("price not known · pod pod1"), "{shown}");
        assert!(shown.contains("NO PROVEN FUSE STOPS THIS POD BY ITSELF"), "{shown}");
    }
}

#[test]
fn a_silent_log_a_suspicion_and_a_page_are_said() {
    let mut model = known();
    assert!(shown(&model, (80, 24), at(400)).contains("log silent for 6:43"));
    assert!(shown(&model, (80, 24), at(700)).contains("log SILENT for 11:43"));
    let evidence = "bad\x1b[2J\nloss".to_owned();
    let finding = Finding { cause: FailureCause::Nan, evidence };
    let quiet = WatchStatus { quiet: true, failure_detected: Some(finding.clone()), ..status(250) };
    model.take(WatchNote::Round(Box::new(quiet)), at(700));
    let told = shown(&model, (80, 24), at(700));
    assert!(told.contains("the GPU works: quiet, no stall"), "{told}");
    assert!(told.contains("suspicion (not a number): bad [2J loss"), "{told}");
    model.take(WatchNote::Page(Verdict::Failed(finding)), at(701));
    let told = shown(&model, (40, 10), at(701));
    assert!(told.contains("PAGE: failure (not a number)"), "{told}");
}

/// Whatever the terminal's size, and while it changes: a picture, never a panic.
#[test]
fn every_size_has_a_picture() {
    let (known, unknown) = (known(), model());
    let mut flat = model();
    flat.take(WatchNote::Saw(Box::new(sight(&[(7, -1e300)]))), at(0));
    for width in [1, 2, 3, 7, 20, 39, 59, 60, 61, 200] {
        for height in [1, 2, 3, 5, 9, 15, 16, 17, 19, 23, 60] {
            for model in [&known, &unknown, &flat] {
                shown(model, (width, height), at(10));
            }
        }
    }
}
