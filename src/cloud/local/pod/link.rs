//! A connection to a pod that can stand still: nothing is read and nothing written while the fault
//! lasts, and neither side is told.

use super::host::Pod;
use crate::cloud::local::faults::LINK_STALLS;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Sleep;

/// How often it is looked whether it still stands still.
const LOOK: Duration = Duration::from_millis(50);

/// One connection.
pub struct Link {
    stream: TcpStream,
    pod: Arc<Pod>,
    reading: Option<Pin<Box<Sleep>>>,
    writing: Option<Pin<Box<Sleep>>>,
}

impl Link {
    pub const fn new(stream: TcpStream, pod: Arc<Pod>) -> Self {
        Self { stream, pod, reading: None, writing: None }
    }
}

/// Ready once the link moves again.
fn moves(pod: &Pod, pause: &mut Option<Pin<Box<Sleep>>>, cx: &mut Context<'_>) -> Poll<()> {
    loop {
        if let Some(sleep) = pause {
            ready!(sleep.as_mut().poll(cx));
            *pause = None;
        }
        if !pod.faults().lasts(LINK_STALLS) {
            return Poll::Ready(());
        }
        *pause = Some(Box::pin(tokio::time::sleep(LOOK)));
    }
}

impl AsyncRead for Link {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        ready!(moves(&this.pod, &mut this.reading, cx));
        Pin::new(&mut this.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Link {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        ready!(moves(&this.pod, &mut this.writing, cx));
        Pin::new(&mut this.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
