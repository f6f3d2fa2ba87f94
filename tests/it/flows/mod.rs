//! The whole loop, from a config file to a stop that was read back, against the local cloud. What
//! the provider and the pod received is read where they record it, at the port.

mod bad_input;
mod bad_state;
mod carrying;
mod dry_run;
mod end_of_job;
mod faults;
pub mod fixture;
mod fuses;
mod guards;
mod journal;
mod limits;
mod lost_contact;
mod money;
mod notices;
mod pod_faults;
mod refusals;
mod seeing;
mod shown_faults;
pub mod signals;
mod stop_faults;
mod stop_supervised;
pub mod supervised;
pub mod twin;
mod watch;
mod watch_view;
mod watchdog;
mod whole_loop;
mod why;
