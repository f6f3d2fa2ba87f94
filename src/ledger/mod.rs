//! The journal of what podtether did to the account: an intent is on disk before every changing
//! call, and its end after it. An intent without an end means: ask the provider first.
//!
//! `entry`, `line`, `book` and `launches` are pure; `file` and `reading` are the only ones that touch the disk,
//! and `noted` is told the time.

mod book;
mod creates;
mod entry;
mod file;
mod launches;
mod line;
mod noted;
mod promises;
mod reading;
mod runs;

pub use book::{Book, BootAttempt, Exit, FailedBoot, OpenIntent};
pub use creates::Create;
pub use entry::{Action, Entry, Event};
pub use file::{Ledger, LedgerError, project_folder};
pub use launches::{Launch, LaunchOutcome, Launches};
pub use line::VERSION;
pub use noted::{Noted, Uptime};
pub use promises::Promise;
pub use runs::Run;
