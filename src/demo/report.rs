//! What the demo found, as one object. `ok` is true only if everything that it shows is so.

use crate::domain::Usd;
use crate::ops::{CloudName, StopStatus, Tether};
use crate::supervise::Summary;
use chrono::{DateTime, Utc};
use serde::Serialize;
use std::path::PathBuf;

/// The demo's findings.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DemoReport {
    /// Whether all of it is so.
    pub ok: bool,
    /// What is not so.
    pub problems: Vec<String>,
    /// Which cloud it ran on.
    pub cloud: CloudName,
    /// The supervised job.
    pub job: Job,
    /// What came home.
    pub capture: Capture,
    /// The stop.
    pub stop: Stop,
    /// What it would have cost.
    pub spend: Spend,
    /// The reward curve, a PNG file.
    pub plot: PathBuf,
    /// The summary of the supervised run.
    pub summary: Option<PathBuf>,
    /// How long all of it took, in seconds.
    pub elapsed_sec: f64,
}

/// The supervised job.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Job {
    /// Its id.
    pub id: Option<String>,
    /// Its last known state.
    pub state: String,
    /// Its exit code.
    pub exit_code: Option<i32>,
    /// Iterations seen in its log.
    pub iterations: usize,
    /// Mean reward of the first iteration.
    pub first_reward: Option<f64>,
    /// Mean reward of the last iteration.
    pub last_reward: Option<f64>,
}

/// What came home.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Capture {
    /// Whether every file is here with the size and SHA-256 that it had on the pod.
    pub complete: bool,
    /// How many files.
    pub files: u64,
}

/// The stop.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Stop {
    /// How far it is known to be.
    pub status: Option<StopStatus>,
    /// What the provider was seen to say after the request.
    pub observed: Option<String>,
    /// When.
    pub observed_at: Option<DateTime<Utc>>,
    /// What the provider said in a read of its own, after everything was over.
    pub read_again: Option<String>,
}

/// What it would have cost.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Spend {
    /// Everything together, at RunPod's list price; nothing was paid.
    pub total_usd: Option<Usd>,
}

impl DemoReport {
    pub(super) fn of(
        tether: &Tether,
        summary: &Summary,
        curve: &[(u64, f64)],
        plot: PathBuf,
        read_again: Option<String>,
    ) -> Self {
        let pulled = [&summary.pulled.job_dir, &summary.pulled.analysis];
        let stop = summary.stop.as_ref();
        let mut report = Self {
            ok: true,
            problems: Vec::new(),
            cloud: tether.cloud_name(),
            job: Job {
                id: summary.job_id.clone(),
                state: summary.state.clone().unwrap_or_else(|| "unknown".to_owned()),
                exit_code: summary.exit_code,
                iterations: curve.len(),
                first_reward: curve.first().map(|point| point.1),
                last_reward: curve.last().map(|point| point.1),
            },
            capture: Capture {
                complete: summary.capture_complete,
                files: pulled.into_iter().flatten().map(|answer| answer.files).sum(),
            },
            stop: Stop {
                status: stop.map(|stop| stop.status),
                observed: stop.and_then(|stop| stop.observed.clone()),
                observed_at: stop.and_then(|stop| stop.observed_at),
                read_again,
            },
            spend: Spend { total_usd: summary.spend.as_ref().map(|spend| spend.total_usd) },
            plot,
            summary: summary.summary_path.clone(),
            elapsed_sec: 0.0,
        };
        report.judge(summary);
        report
    }

    fn judge(&mut self, summary: &Summary) {
        let exited = Some("EXITED".to_owned());
        let learned = match (self.job.first_reward, self.job.last_reward) {
            (Some(first), Some(last)) => last > first,
            _ => false,
        };
        let claims = [
            (self.cloud == CloudName::Local, "it did not run on the local cloud"),
            (self.job.state == "succeeded", "the job did not succeed"),
            (learned, "the reward did not rise"),
            (
                self.capture.complete && self.capture.files > 0,
                "the results did not come home whole",
            ),
            (self.stop.status == Some(StopStatus::Stopped), "the stop was not confirmed"),
            (
                self.stop.observed == exited && self.stop.read_again == exited,
                "EXITED was not read back",
            ),
            (self.spend.total_usd.is_some_and(|usd| usd > Usd::ZERO), "no spend was reported"),
            (self.plot.is_file(), "there is no picture"),
            (summary.process_exit_code == Some(0), "supervise did not end with exit code 0"),
        ];
        let problems: Vec<&str> =
            claims.iter().filter(|(holds, _)| !holds).map(|(_, problem)| *problem).collect();
        for problem in problems {
            self.fail(problem.to_owned());
        }
        if !self.ok {
            self.problems.extend(
                summary.errors.iter().map(|trouble| format!("{}: {}", trouble.step, trouble.error)),
            );
        }
    }

    pub(super) fn fail(&mut self, problem: String) {
        self.ok = false;
        self.problems.push(problem);
    }
}
