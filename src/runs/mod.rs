//! What is kept of every job: where it came from, what it left and what it cost; and what can be told
//! from many of them. Pure: the files are read and written in `ops`.

mod compare;
mod folder;
mod history;
mod left;
mod pick;
mod record;
mod run;
mod select;

pub use compare::{Comparison, Difference, compare};
pub use folder::{FolderFound, Listing, is_folder_name, judge_folder};
pub use history::{Past, past};
pub(crate) use left::lines_told;
pub use left::{Results, Reward, RunFile};
pub use pick::{PickError, pick};
pub use record::{Cost, Home, NotARecord, Numbers, RunRecord, Seen, Supervised, VERSION};
pub use run::{Around, ExitSeen, Run, SummarySeen, iterations_done, merge};
pub use select::{Filter, known_state, since};

#[cfg(test)]
pub mod sample;
