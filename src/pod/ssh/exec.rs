//! One command on one channel: feed it, drain it to the caps, learn how it ended.

use crate::pod::{Captured, ExecLimits, ExecOutput, ExecStatus, ShellError, ShellErrorKind};
use bytes::Bytes;
use russh::client::Msg;
use russh::{Channel, ChannelMsg, ChannelReadHalf, ChannelWriteHalf, Sig};
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;

/// How long a channel may stay quiet after its command has ended. sshd keeps it open while a
/// background child holds the streams; whoever wants that child has to detach it.
const AFTER_EXIT: Duration = Duration::from_secs(2);

/// The last bytes of a stream.
pub(crate) struct Tail {
    cap: usize,
    bytes: Vec<u8>,
    total: u64,
}

impl Tail {
    pub(crate) const fn new(cap: usize) -> Self {
        Self { cap, bytes: Vec::new(), total: 0 }
    }

    pub(crate) fn push(&mut self, data: &[u8]) {
        self.total += data.len() as u64;
        let kept = &data[data.len().saturating_sub(self.cap)..];
        // Cut only when twice the cap is there, so that each byte is moved about once.
        if self.bytes.len() + kept.len() > self.cap.saturating_mul(2) {
            self.trim(self.cap.saturating_sub(kept.len()));
        }
        self.bytes.extend_from_slice(kept);
    }

    fn trim(&mut self, keep: usize) {
        let surplus = self.bytes.len().saturating_sub(keep);
        self.bytes.drain(..surplus);
    }

    pub(crate) fn finish(mut self) -> Captured {
        self.trim(self.cap);
        Captured { bytes: self.bytes, total: self.total }
    }
}

/// A command that has been sent to the pod.
pub(crate) struct Running {
    ends: Option<Ends>,
}

/// Both ends of its channel.
pub(crate) struct Ends {
    pub(crate) reader: ChannelReadHalf,
    pub(crate) writer: ChannelWriteHalf<Msg>,
    /// Held until the channel is closed.
    _slot: Option<OwnedSemaphorePermit>,
}

impl Running {
    /// Takes an open channel and sends the command on it. The answer to the request is read with
    /// the rest: waiting for it would cost a round trip.
    pub(crate) async fn start(
        channel: Channel<Msg>,
        wire: Vec<u8>,
        slot: Option<OwnedSemaphorePermit>,
    ) -> Result<Self, russh::Error> {
        channel.exec(true, wire).await?;
        let (reader, writer) = channel.split();
        Ok(Self { ends: Some(Ends { reader, writer, _slot: slot }) })
    }

    /// Both ends of the channel. Whoever takes them has to read to the close.
    pub(crate) fn into_ends(mut self) -> Option<Ends> {
        self.ends.take()
    }

    /// Feeds `stdin` and captures to the end. `lost` says why the link ended, when it did.
    pub(crate) async fn capture(
        mut self,
        stdin: Vec<u8>,
        limits: ExecLimits,
        tried: &str,
        lost: impl Fn() -> String,
    ) -> Result<ExecOutput, ShellError> {
        let fault =
            |kind, detail: String| Err(ShellError { kind, tried: tried.to_owned(), detail });
        let mut stdout = Tail::new(limits.stdout_bytes);
        let mut stderr = Tail::new(limits.stderr_bytes);
        let mut status = None;
        let Some(Ends { reader, writer, .. }) = self.ends.as_mut() else {
            return fault(ShellErrorKind::Lost, lost());
        };
        let feed = async {
            // A command that ends without reading everything is no error.
            let _ = writer.data_bytes(Bytes::from(stdin)).await;
            let _ = writer.eof().await;
        };
        let read = async {
            loop {
                let message = if status.is_some() {
                    match tokio::time::timeout(AFTER_EXIT, reader.wait()).await {
                        Ok(message) => message,
                        Err(_) => return End::Closed,
                    }
                } else {
                    reader.wait().await
                };
                match message {
                    Some(ChannelMsg::Data { data }) => stdout.push(&data),
                    Some(ChannelMsg::ExtendedData { data, .. }) => stderr.push(&data),
                    Some(ChannelMsg::ExitStatus { exit_status }) => {
                        status = Some(ExecStatus::Code(exit_status));
                    }
                    Some(ChannelMsg::ExitSignal { signal_name, .. }) => {
                        status = Some(ExecStatus::Signal(signal_text(&signal_name)));
                    }
                    Some(ChannelMsg::Failure) => return End::Refused,
                    Some(ChannelMsg::Close) => return End::Closed,
                    None => return End::Lost,
                    Some(_) => {}
                }
            }
        };
        let both = async {
            tokio::pin!(read);
            tokio::select! {
                biased;
                end = &mut read => return end,
                () = feed => {}
            }
            read.await
        };
        let end = tokio::time::timeout(limits.timeout, both).await;
        match (end, status) {
            // An exit code that has arrived counts, whatever became of the channel.
            (_, Some(status)) => {
                Ok(ExecOutput { status, stdout: stdout.finish(), stderr: stderr.finish() })
            }
            (Err(_), None) => fault(
                ShellErrorKind::Timeout,
                format!(
                    "it did not end within {} s; it may still run on the pod",
                    limits.timeout.as_secs_f32()
                ),
            ),
            (Ok(End::Refused), None) => fault(
                ShellErrorKind::Auth,
                "the server lets us in but does not run commands for this user".to_owned(),
            ),
            (Ok(End::Closed), None) => fault(
                ShellErrorKind::Lost,
                "the server closed the channel without saying how the command ended".to_owned(),
            ),
            (Ok(End::Lost), None) => fault(
                ShellErrorKind::Lost,
                format!("{}; it may have run, and may still run", lost()),
            ),
        }
    }
}

impl Drop for Running {
    /// Closes the channel and drains it until the server agrees, also when the caller gave up in
    /// the middle. A channel that nobody reads would in the end block every other one.
    fn drop(&mut self) {
        let (Some(mut ends), Ok(runtime)) =
            (self.ends.take(), tokio::runtime::Handle::try_current())
        else {
            return;
        };
        runtime.spawn(async move {
            let _ = ends.writer.close().await;
            while let Some(message) = ends.reader.wait().await {
                if matches!(message, ChannelMsg::Close) {
                    break;
                }
            }
        });
    }
}

enum End {
    Closed,
    Refused,
    Lost,
}

pub(crate) fn signal_text(signal: &Sig) -> String {
    match signal {
        Sig::Custom(name) => super::failure::plain(name),
        known => format!("{known:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tail_keeps_exactly_the_last_bytes() {
        for cap in [0, 1, 3, 10, 100] {
            for chunk in [1, 2, 7, 50] {
                let whole: Vec<u8> = (0..=200).collect();
                let mut tail = Tail::new(cap);
                for piece in whole.chunks(chunk) {
                    tail.push(piece);
                    assert!(tail.bytes.len() <= 2 * cap);
                }
                let captured = tail.finish();
                assert_eq!(captured.bytes, whole[whole.len() - cap..], "{cap} {chunk}");
                assert_eq!(captured.total, 201);
                assert!(captured.is_truncated());
            }
        }
    }
}
