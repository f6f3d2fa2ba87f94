//! The MCP server as its clients meet it: the real binary, raw lines, both eras of the protocol.

mod bad_lines;
mod busy;
pub mod client;
mod hostile_words;
mod lifetime;
mod rounds;
pub mod scene;
mod secrets;
mod start_up;
mod surface;
mod trainings;
