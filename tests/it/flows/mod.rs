//! The whole loop, from a config file to a stop that was read back, against the local cloud. What
//! the provider and the pod received is read where they record it, at the port.

mod bad_input;
mod bad_state;
mod carrying;
mod dry_run;
mod early;
mod end_of_job;
mod faults;
pub mod fixture;
mod fuses;
mod guards;
pub mod journal;
mod killed;
mod limits;
mod lost_contact;
mod money;
mod notices;
mod pod_faults;
mod refusals;
mod resume;
mod runs;
mod seeing;
mod shown_faults;
pub mod signals;
pub mod slept;
mod stop_faults;
mod stop_supervised;
mod summary;
pub mod supervised;
mod terminal;
mod training;
pub mod twin;
mod watch;
mod watch_view;
mod watchdog;
mod whole_loop;
mod why;
