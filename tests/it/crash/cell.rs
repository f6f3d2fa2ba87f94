//! One place at which the program dies, and the list of all of them, made from a run that nobody
//! disturbs.

use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scenario {
    /// ensure_pod from nothing: a volume, a pod.
    Create,
    /// ensure_pod on a stopped pod.
    Start,
    /// run_job.
    Launch,
    /// `podtether supervise`, from the launch to the stop.
    Supervise,
    /// stop_pod.
    StopByTool,
    /// `podtether stop --vehicle`.
    StopVehicle,
    /// `podtether stop --all`.
    StopAll,
}

/// Around a request or a command on the pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// It is never carried out.
    Before,
    /// It is carried out, and nobody hears of it.
    After,
}

/// Where in a line of the journal the write is cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Nothing of it is written.
    Start,
    Middle,
    /// All of it but its end.
    NewlineMissing,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Crash {
    /// At none: the run by which the others are listed.
    Never,
    /// `METHOD path#N`.
    Request(String, When),
    /// `SCRIPT#N`, a command on the pod.
    PodStep(String, When),
    /// At the write of this line, counted from the first that the run writes.
    Journal { line: usize, cut: Cut },
}

pub struct Cell {
    pub scenario: Scenario,
    pub crash: Crash,
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: ", self.scenario)?;
        match &self.crash {
            Crash::Never => write!(f, "undisturbed"),
            Crash::Request(key, when) => write!(f, "killed at {key}, {when:?}"),
            Crash::PodStep(key, when) => write!(f, "killed at {key} on the pod, {when:?}"),
            Crash::Journal { line, cut } => {
                write!(f, "killed at journal line {} of the run, {cut:?}", line + 1)
            }
        }
    }
}

/// What an undisturbed run did.
pub struct Record {
    pub requests: Vec<String>,
    pub pod_steps: Vec<String>,
    /// Lengths of the lines that it wrote, with their ends, in bytes.
    pub lines: Vec<u64>,
}

/// How often these are asked depends on how fast things go; so often they are asked in any case.
const POLLS: [(&str, usize); 3] = [("await_exit.sh", 1), ("pod_look.sh", 2), ("renew_lease.sh", 1)];

impl Record {
    /// Every place.
    pub fn crashes(&self, with_journal: bool) -> Vec<Crash> {
        let both = [When::Before, When::After];
        let requests = self.requests.iter().cloned();
        let steps = self.pod_steps.iter().filter(|key| !is_later_poll(key)).cloned();
        let lines = if with_journal { self.lines.len() } else { 0 };
        let cuts = [Cut::Start, Cut::Middle, Cut::NewlineMissing];
        requests
            .flat_map(|key| both.map(|when| Crash::Request(key.clone(), when)))
            .chain(steps.flat_map(|key| both.map(|when| Crash::PodStep(key.clone(), when))))
            .chain((0..lines).flat_map(|line| cuts.map(|cut| Crash::Journal { line, cut })))
            .collect()
    }

    /// Whether a run did something that no cell stands for.
    pub fn lacks(&self, other: &Self) -> Vec<String> {
        let requests = other.requests.iter().filter(|key| !self.requests.contains(key));
        let steps = other.pod_steps.iter();
        let steps = steps.filter(|key| !self.pod_steps.contains(key) && !is_later_poll(key));
        requests.chain(steps).cloned().collect()
    }

    /// After how many bytes of the run's lines the file may grow no more.
    pub fn limit(&self, line: usize, cut: Cut) -> u64 {
        let before: u64 = self.lines[..line].iter().sum();
        before
            + match cut {
                Cut::Start => 0,
                Cut::Middle => self.lines[line] / 2,
                Cut::NewlineMissing => self.lines[line] - 1,
            }
    }
}

fn is_later_poll(key: &str) -> bool {
    let (name, times) = key.rsplit_once('#').unwrap();
    let times: usize = times.parse().unwrap();
    POLLS.iter().any(|(poll, sure)| *poll == name && times > *sure)
}
