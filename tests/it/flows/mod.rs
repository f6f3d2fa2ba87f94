//! The whole loop, from a config file to a stop that was read back, against the local cloud. What
//! the provider and the pod received is read where they record it, at the port.

mod bad_input;
mod dry_run;
mod end_of_job;
mod faults;
mod fixture;
mod guards;
mod journal;
mod limits;
mod lost_contact;
mod refusals;
mod seeing;
mod shown_faults;
mod signals;
mod stop_faults;
mod stop_supervised;
mod supervised;
mod twin;
mod watchdog;
mod whole_loop;
