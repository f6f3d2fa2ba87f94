//! The field's words as types. Pure: no I/O, no clock, no environment, no randomness.

mod budget_window;
mod campaign;
mod command;
mod data_center;
mod fuse;
mod gpu;
mod job;
mod job_end;
mod job_meta;
mod label;
mod money;
mod nearest;
mod pod;
mod receipt;
mod recipe;
pub mod scripts;
mod stock;
mod template;
mod vehicle;
mod volume;

pub use budget_window::BudgetWindow;
pub use campaign::{
    Campaign, ExpectedReward, Link, LinkEnd, LinkExpected, Pin, PinnedFile, RewardLines, Work,
};
pub use command::{RemoteCommand, Script, join_quoted, split_words};
pub use data_center::DataCenterId;
pub use fuse::{
    DeadmanSeen, FuseName, FuseReport, FuseState, JobsSeen, LiveJob, Proof, UnattendedBill, Vigil,
    VigilSeen, Watchdog, WatchdogSeen, longest_asleep, longest_unattended, slowest_proven,
};
pub use gpu::{GpuOffer, GpuTypeId};
pub use job::{Ceiling, CeilingError, JobId, JobName, JobNameError, JobState};
pub use job_end::JobEnd;
pub use job_meta::JobMeta;
pub use label::{Label, LabelError, Labels};
pub use money::{MoneyError, Price, Usd, UsdPerHour};
pub use nearest::nearest;
pub use pod::{CloudTier, NetworkMount, Pod, PodId, PodStatus, SshEndpoint};
pub use receipt::{
    Circumstances, DrillFuse, DrillOutcome, FailureDomain, FuseReceipt, ProvenFuses, Receipts,
};
pub use recipe::{
    CrossCheck, Expected, Level, LinePattern, Marker, Recipe, RewardRange, RunLogs, SourceEdit,
};
pub use stock::Stock;
pub use template::{Template, TemplateError};
pub use vehicle::{Limits, Timeouts, Vehicle, VehicleName};
pub use volume::{Volume, VolumeId};

#[cfg(test)]
pub mod sample;
