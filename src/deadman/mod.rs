//! The laptop's fuse: a process of its own that stops one vehicle's pod at a wall-clock deadline,
//! whatever became of the session that armed it. `state` decides, `run` is the loop around it, `arm`
//! starts, extends and calls off, `status` says what became of it, `timer` is for after a reboot.
//!
//! It depends on as little as it can: the key and what the stop needs come over a pipe when it is
//! armed and stay in memory, so neither a locked keychain nor a config that was edited stands in the
//! way when it fires (C11).

mod access;
mod arm;
mod arm_error;
mod claim;
mod fire;
mod news;
mod order;
mod prove;
mod record;
mod risk;
mod run;
mod seat;
mod starts;
pub mod state;
mod status;
mod timer;

pub use access::Access;
pub use arm::{
    Armed, Arming, CallOff, Called, CancelError, How, MAX_HOURS, Wish, cancel, ensure_armed, extend,
};
pub use arm_error::ArmError;
pub use claim::{Claim, last_claim};
pub use fire::Attempt;
pub use news::{News, NewsKind};
pub use order::{Order, Telling};
pub use record::{Proof, Record, Summary, Word};
pub use run::{Fuse, Pace, fuse, fuse_over, leave_session, stand_fast};
pub use seat::Seen;
pub use starts::{OwnProgram, Starts};
pub use status::{VehicleStatus, look, seen, status, worst};
pub use timer::{
    TimerFile, files as timer_files, link as timer_link, note_tick, note_told, overdue, told_at,
};
