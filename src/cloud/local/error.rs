//! Why a local cloud cannot be served.

use std::io;
use std::path::PathBuf;

/// A local cloud that cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Another daemon serves the folder.
    #[error("{} is already served by another local cloud; stop that one or use another folder", .0.display())]
    AlreadyServed(PathBuf),
    /// A file or a socket.
    #[error("could not {doing} {}", path.display())]
    Io {
        /// What was tried.
        doing: &'static str,
        /// On which file.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// The address is not free.
    #[error("could not listen on 127.0.0.1:{port}")]
    Listen {
        /// The port asked for.
        port: u16,
        /// Why it failed.
        source: io::Error,
    },
    /// What the folder remembers cannot be understood.
    #[error("{} cannot be read: {detail}; move the folder away to start afresh", path.display())]
    Document {
        /// The file.
        path: PathBuf,
        /// Why.
        detail: String,
    },
}
