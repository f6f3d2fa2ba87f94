//! The MCP face: a stdio server with task-shaped tools. One file per tool in `tools`; `server` is the
//! glue to rmcp. stdout belongs to the protocol alone.

mod cap;
mod eof;
mod progress;
mod schema;
mod server;
mod tool;
mod tools;

pub use server::{Opener, serve};
pub use tools::all as all_tools;
