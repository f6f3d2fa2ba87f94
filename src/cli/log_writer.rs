//! A log writer that never waits: a client that does not drain our stderr must not hold up an
//! answer (G11). What does not fit is dropped, and the drop is counted in the next line that fits.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;
use tracing_subscriber::fmt::MakeWriter;

/// How many records may wait to be written.
const QUEUE: usize = 1_024;
/// Longer records are cut: one record may hold a whole request.
const RECORD_BYTES: usize = 8 * 1024;

/// How much is kept back at most, in bytes, while a view has the screen.
const HELD_BYTES: usize = 256 * 1024;

/// How long the end of the process waits for the last records.
const LAST_WORDS: Duration = Duration::from_millis(200);

enum Item {
    Record(Vec<u8>),
    /// Everything before this is written when the sender is answered.
    Mark(SyncSender<()>),
}

/// Hands records to a thread that writes them.
#[derive(Clone)]
pub struct LogWriter {
    queue: SyncSender<Item>,
    dropped: Arc<AtomicU64>,
    is_held: Arc<AtomicBool>,
}

impl LogWriter {
    /// Starts the thread, which writes to a copy of stderr: the lock of the standard handle stays
    /// free while the copy is stuck.
    ///
    /// # Errors
    /// When the process is out of file descriptors or threads.
    pub fn to_stderr() -> io::Result<Self> {
        // A copy that no child inherits: the local cloud outlives us, and whoever reads our stderr
        // to its end would wait for it.
        Self::to(File::from(io::stderr().as_fd().try_clone_to_owned()?))
    }

    fn to(out: impl Write + Send + 'static) -> io::Result<Self> {
        let (queue, items) = sync_channel(QUEUE);
        let dropped = Arc::new(AtomicU64::new(0));
        let is_held = Arc::new(AtomicBool::new(false));
        let (counter, held) = (Arc::clone(&dropped), Arc::clone(&is_held));
        std::thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || write_all(&items, out, &counter, &held))?;
        Ok(Self { queue, dropped, is_held })
    }
}

/// Held for as long as a command runs; its end waits a moment for the last records.
pub struct LastWords(pub Option<LogWriter>);

impl LastWords {
    /// Keeps records back: something else has the screen.
    pub fn hold(&self) {
        self.set_held(true);
    }

    /// Lets them go, the next record or the end of the command at the latest.
    pub fn release(&self) {
        self.set_held(false);
    }

    fn set_held(&self, is_held: bool) {
        if let Some(log) = &self.0 {
            log.is_held.store(is_held, Ordering::SeqCst);
        }
    }
}

impl Drop for LastWords {
    fn drop(&mut self) {
        let (written, wait) = sync_channel(1);
        let asked = self.0.as_ref().map(|log| log.queue.try_send(Item::Mark(written)));
        if asked.is_some_and(|asked| asked.is_ok()) {
            let _ = wait.recv_timeout(LAST_WORDS);
        }
    }
}

fn write_all(
    items: &Receiver<Item>,
    mut out: impl Write,
    dropped: &AtomicU64,
    is_held: &AtomicBool,
) {
    let mut kept: Vec<u8> = Vec::new();
    for item in items {
        let is_held = is_held.load(Ordering::SeqCst);
        if !is_held && !kept.is_empty() {
            let _ = out.write_all(&std::mem::take(&mut kept));
        }
        let record = match item {
            Item::Record(record) => record,
            Item::Mark(written) => {
                let _ = written.send(());
                continue;
            }
        };
        if is_held {
            match kept.len() + record.len() <= HELD_BYTES {
                true => kept.extend_from_slice(&record),
                false => drop(dropped.fetch_add(1, Ordering::Relaxed)),
            }
            continue;
        }
        let missing = dropped.swap(0, Ordering::Relaxed);
        if missing > 0 {
            let _ = writeln!(out, "({missing} log records were dropped: stderr was not read)");
        }
        // Nobody is left to be told that the log cannot be written.
        let _ = out.write_all(&record);
    }
}

/// One record, handed over whole when it is complete.
pub struct Record<'a> {
    writer: &'a LogWriter,
    bytes: Vec<u8>,
}

impl Write for Record<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = RECORD_BYTES.saturating_sub(self.bytes.len());
        self.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Record<'_> {
    fn drop(&mut self) {
        let mut bytes = std::mem::take(&mut self.bytes);
        if bytes.is_empty() {
            return;
        }
        if bytes.last() != Some(&b'\n') {
            bytes.extend_from_slice("… (cut)\n".as_bytes());
        }
        if let Err(TrySendError::Full(_)) = self.writer.queue.try_send(Item::Record(bytes)) {
            self.writer.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl<'a> MakeWriter<'a> for LogWriter {
    type Writer = Record<'a>;

    fn make_writer(&'a self) -> Record<'a> {
        Record { writer: self, bytes: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Sender, channel};

    /// A stderr that takes nothing until the gate is opened.
    struct Gated {
        gate: Receiver<()>,
        out: Sender<Vec<u8>>,
    }

    impl Write for Gated {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _ = self.gate.recv();
            let _ = self.out.send(bytes.to_vec());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// G11: this test ends only because a full queue drops.
    #[test]
    fn a_stuck_stderr_costs_records_and_never_time() {
        let (open, gate) = channel();
        let (out, written) = channel();
        let writer = LogWriter::to(Gated { gate, out }).unwrap();
        for number in 0..3 * QUEUE {
            writeln!(writer.make_writer(), "record {number}").unwrap();
        }
        writer.make_writer().write_all(&vec![b'x'; 3 * RECORD_BYTES]).unwrap();
        drop(open);
        drop(writer);
        let text = String::from_utf8(written.iter().flatten().collect()).unwrap();
        assert!(text.contains("record 0\n") && !text.contains("record 3000\n"), "{text}");
        assert!(text.contains("log records were dropped"), "{text}");
    }

    #[test]
    fn records_wait_while_something_else_has_the_screen_and_come_out_in_order() {
        let (open, gate) = channel();
        drop(open);
        let (out, written) = channel();
        let words = LastWords(Some(LogWriter::to(Gated { gate, out }).unwrap()));
        let writer = words.0.clone().unwrap();
        let settled = || {
            let (send, done) = sync_channel(1);
            writer.queue.send(Item::Mark(send)).unwrap();
            done.recv().unwrap();
        };
        words.hold();
        writeln!(writer.make_writer(), "one").unwrap();
        settled();
        assert!(written.try_recv().is_err(), "the screen was written on");
        words.release();
        writeln!(writer.make_writer(), "two").unwrap();
        settled();
        let text: Vec<u8> = written.try_iter().flatten().collect();
        assert_eq!(String::from_utf8(text).unwrap(), "one\ntwo\n");
    }

    #[test]
    fn a_long_record_is_cut_and_says_so() {
        let (open, gate) = channel();
        drop(open);
        let (out, written) = channel();
        let writer = LogWriter::to(Gated { gate, out }).unwrap();
        writer.make_writer().write_all(&vec![b'x'; 3 * RECORD_BYTES]).unwrap();
        writeln!(writer.make_writer(), "short").unwrap();
        drop(writer);
        let text = String::from_utf8(written.iter().flatten().collect()).unwrap();
        assert!(text.contains("… (cut)\n") && text.ends_with("short\n"), "{text}");
        assert!(text.len() < RECORD_BYTES + 100, "{}", text.len());
    }
}
