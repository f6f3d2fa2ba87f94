//! One cell's own folder, local cloud and proxy, and what is asked there past podtether.

use super::cell::{Cell, Crash, Record, Scenario};
use super::pod_steps::PodSteps;
use super::proxy::Proxy;
use super::victim::{Ended, Victim};
use crate::flows::fixture::{Fixture, POD, VEHICLE, VOLUME, ensure};
use podtether::clock::SystemClock;
use podtether::ledger::{Action, Event, Ledger};
use serde_json::Value;
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use tokio::runtime::Runtime;

pub struct Rig {
    // Before the fixture: fields are dropped in this order.
    proxy: Proxy,
    steps: PodSteps,
    pub runtime: Runtime,
    pub fixture: Fixture,
    _lock: File,
}

/// Larger than every other file that podtether writes in a run, in bytes.
const LARGE: usize = 32_000;

impl Rig {
    pub fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let fixture = Fixture::new();
        // What podtether takes for the local cloud's folder: all of it is the real one's but the
        // address, and the lock is held, as a daemon does.
        let front = fixture.path("front");
        fs::create_dir(&front).unwrap();
        symlink(fixture.state().join("mnt"), front.join("mnt")).unwrap();
        let cloud = fixture.running_cloud();
        let proxy = runtime.block_on(Proxy::start(&cloud.url, cloud.key.reveal()));
        let ready = fs::read_to_string(fixture.state().join("daemon.json")).unwrap();
        fs::write(front.join("daemon.json"), ready.replace(&cloud.url, &proxy.url)).unwrap();
        let lock = File::create(front.join("daemon.lock")).unwrap();
        lock.lock().unwrap();
        let config = fs::read_to_string(fixture.config_file()).unwrap();
        // Without the laptop's fuse, whose process asks the same proxy at times of its own; and so with a
        // budget for a pod that is counted for a week.
        let config = config
            .replace("state_dir: cloud", "state_dir: front")
            .replace("budget_usd: 5", "budget_usd: 500\nfuse:\n  auto_arm_hours: off");
        fs::write(fixture.config_file(), config).unwrap();
        let steps = PodSteps::in_folder(fixture.path("steps"));
        Self { proxy, steps, runtime, fixture, _lock: lock }
    }

    /// Everything up to where the scenario begins.
    pub fn prepare(&self, cell: &Cell) {
        let scenario = cell.scenario;
        if scenario == Scenario::Create {
            // Here the journal is the first file that is written, and its first line is a cell too.
            return;
        }
        self.runtime.block_on(async {
            let tether = self.fixture.tether().await;
            let pod = self.fixture.running(&tether).await.pod.unwrap().id.0;
            // A look notes a pod that it sees for the first time: here, and in no run of a cell.
            tether.ensure_pod(&ensure(0)).await.unwrap();
            if scenario == Scenario::Start {
                assert!(tether.stop_pod(VEHICLE).await.unwrap().is_off());
            }
            self.steps.watch(&self.fixture.state().join("pods").join(pod));
        });
        if matches!(cell.crash, Crash::Journal { .. }) {
            self.fill_journal();
        }
    }

    /// Makes the journal the largest file of all, so that a limit on files meets it alone: with an
    /// entry of an earlier day, which is closed.
    fn fill_journal(&self) {
        let ledger = self.fixture.ledger();
        let id = ledger
            .intend(|id| Event::Intend {
                id,
                vehicle: VEHICLE.into(),
                action: Action::CreateVolume { name: "of an earlier day".into() },
                micros_per_hour: None,
            })
            .unwrap();
        let error = "x".repeat(LARGE);
        ledger.append(Event::Failed { id, error, may_have_taken_effect: false }).unwrap();
    }

    /// Runs the program until it is killed as planned or ends by itself.
    pub fn run(&self, cell: &Cell, record: Option<&Record>) -> (Ended, Record) {
        let before = self.journal();
        let request = match &cell.crash {
            Crash::Request(key, when) => Some((key.clone(), *when)),
            _ => None,
        };
        self.proxy.begin(request);
        self.steps.begin(match &cell.crash {
            Crash::PodStep(key, when) => Some((key.as_str(), *when)),
            _ => None,
        });
        let limit = match (&cell.crash, record) {
            (Crash::Journal { line, cut }, Some(record)) => {
                Some(before.len() as u64 + record.limit(*line, *cut))
            }
            _ => None,
        };
        let victim = Victim::start(self, cell.scenario, limit);
        self.proxy.aim_at(victim.pid());
        self.steps.aim_at(victim.pid());
        let ended = victim.ended();
        let written = self.journal()[before.len()..].to_vec();
        let lines = written.split_inclusive(|byte| *byte == b'\n').map(|line| line.len() as u64);
        let record = Record {
            requests: self.proxy.end(),
            pod_steps: self.steps.end(),
            lines: lines.collect(),
        };
        (ended, record)
    }

    pub fn journal(&self) -> Vec<u8> {
        fs::read(self.fixture.ledger().path()).unwrap_or_default()
    }

    /// What is open in the journal, read from a copy: reading repairs what is torn.
    pub fn announced(&self) -> Vec<Action> {
        let copy = self.fixture.path("copy");
        fs::create_dir(&copy).unwrap();
        fs::write(copy.join("journal.jsonl"), self.journal()).unwrap();
        let ledger = Ledger::new(copy, &self.fixture.config_file(), SystemClock::shared());
        let book = ledger.book().unwrap();
        book.open_intents().iter().map(|intent| intent.action.clone()).collect()
    }

    /// The account's own truth, whatever lists show: the vehicle's pod, of which there is at most
    /// one, as id and status.
    pub fn truth(&self) -> Option<(String, String)> {
        let text = fs::read_to_string(self.fixture.state().join("cloud.json")).unwrap_or_default();
        let cloud: Value = serde_json::from_str(&text).unwrap_or_default();
        let named = |list: &str, name: &str| -> Vec<Value> {
            let all = cloud[list].as_array().cloned().unwrap_or_default();
            all.into_iter().filter(|one| one["name"] == name).collect()
        };
        let (pods, volumes) = (named("pods", POD), named("volumes", VOLUME));
        assert!(pods.len() <= 1 && volumes.len() <= 1, "{pods:#?} {volumes:#?}");
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        pods.first().map(|pod| (text(&pod["id"]), text(&pod["status"])))
    }
}
