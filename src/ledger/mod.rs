//! The journal of what podtether did to the account: an intent is on disk before every changing
//! call, and its end after it. An intent without an end means: ask the provider first.
//!
//! `entry`, `line` and `book` are pure; `file` is the only one that touches the disk.

mod book;
mod entry;
mod file;
mod line;

pub use book::{Book, Create, OpenIntent};
pub use entry::{Action, Entry, Event};
pub use file::{Ledger, LedgerError, project_folder};
pub use line::VERSION;
