//! The journal of what podtether did to the account: an intent is on disk before every changing
//! call, and its end after it. An intent without an end means: ask the provider first.
//!
//! `entry`, `line` and `book` are pure; `file` is the only one that touches the disk.

mod book;
mod creates;
mod entry;
mod file;
mod line;
mod promises;
mod runs;

pub use book::{Book, BootAttempt, Exit, FailedBoot, OpenIntent};
pub use creates::Create;
pub use entry::{Action, Entry, Event};
pub use file::{Ledger, LedgerError, project_folder};
pub use line::VERSION;
pub use promises::Promise;
pub use runs::Run;
