//! Following a job's log without changing anything: read, understand, page.

pub mod metrics;
