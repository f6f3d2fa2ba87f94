//! The local cloud: a twin of RunPod's REST v2 on loopback whose pods are folders with an SSH
//! server. It shares no wire shape with the `runpod` client, so that the two cannot share a mistake.

mod api;
mod catalog;
mod daemon;
mod document;
mod error;
mod faults;
mod journal;
mod lifecycle;
mod loopback;
mod on_pods;
mod paths;
mod pod;
mod problem;
mod serve;
mod shim;
mod timing;
mod twin;

pub use daemon::{RunningCloud, StartError, ensure_running, find, stop};
pub use error::ServeError;
pub use faults::{FAULTS, Fault, FaultError, FaultKind, FaultValue, On, ScenarioError, scenario};
pub use serve::{LocalCloud, Options};
pub use shim::run as run_shim;
pub use timing::Timing;
