//! This process's stdin and stdout for bulk data. rsync hands over sockets or pipes, which are
//! used without blocking; tokio's own stdin and stdout would pass each byte through a thread.

use rustix::fs::FileType;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream as StdUnixStream;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;

/// Stdin. Files and /dev/null cannot be polled and are left to a thread.
pub(super) fn stdin() -> Box<dyn AsyncRead + Send + Unpin> {
    let stream = || -> io::Result<Box<dyn AsyncRead + Send + Unpin>> {
        let (kind, fd) = own(io::stdin())?;
        match kind {
            FileType::Socket => Ok(Box::new(socket(fd)?)),
            FileType::Fifo => Ok(Box::new(pipe::Receiver::from_owned_fd(fd)?)),
            _ => Ok(Box::new(tokio::io::stdin())),
        }
    };
    stream().unwrap_or_else(|_| Box::new(tokio::io::stdin()))
}

/// Stdout, likewise.
pub(super) fn stdout() -> Box<dyn AsyncWrite + Send + Unpin> {
    let stream = || -> io::Result<Box<dyn AsyncWrite + Send + Unpin>> {
        let (kind, fd) = own(io::stdout())?;
        match kind {
            FileType::Socket => Ok(Box::new(socket(fd)?)),
            FileType::Fifo => Ok(Box::new(pipe::Sender::from_owned_fd(fd)?)),
            _ => Ok(Box::new(tokio::io::stdout())),
        }
    };
    stream().unwrap_or_else(|_| Box::new(tokio::io::stdout()))
}

fn own(stream: impl AsFd) -> io::Result<(FileType, OwnedFd)> {
    let fd = stream.as_fd().try_clone_to_owned()?;
    let kind = FileType::from_raw_mode(rustix::fs::fstat(&fd)?.st_mode);
    Ok((kind, fd))
}

/// rsync's socket pairs are of the Unix family; reading and writing one asks for no address.
fn socket(fd: OwnedFd) -> io::Result<UnixStream> {
    let stream = StdUnixStream::from(fd);
    stream.set_nonblocking(true)?;
    UnixStream::from_std(stream)
}
