//! A TCP stream whose writes fail once they have been stuck for too long. russh awaits a write
//! inside its session task, where its keep-alive timer is not polled: a peer that stops reading
//! would hang the connection for ever.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Sleep;

/// The stream, with the bound.
pub(super) struct StalledWrite {
    stream: TcpStream,
    limit: Duration,
    stuck: Option<Pin<Box<Sleep>>>,
}

impl StalledWrite {
    pub(super) const fn new(stream: TcpStream, limit: Duration) -> Self {
        Self { stream, limit, stuck: None }
    }
}

impl AsyncRead for StalledWrite {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for StalledWrite {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        let written = Pin::new(&mut this.stream).poll_write(cx, bytes);
        if written.is_ready() {
            this.stuck = None;
            return written;
        }
        let limit = this.limit;
        let stuck = this.stuck.get_or_insert_with(|| Box::pin(tokio::time::sleep(limit)));
        match stuck.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Err(io::Error::new(
                io::ErrorKind::TimedOut,
                format!("the other side has read nothing for {} s", limit.as_secs()),
            ))),
            Poll::Pending => Poll::Pending,
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
