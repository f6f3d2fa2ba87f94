//! The stand-in timeout, for macOS, which has none.

use super::Output;
use rustix::process::{Pid, Signal, kill_process_group};
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt as _;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

/// Runs `timeout [-k TIME] [-s SIGNAL] TIME COMMAND…` as GNU's does: 124 when the time was over,
/// 137 when it took a KILL, else the command's own code.
pub async fn run(words: &[OsString]) -> Output {
    let mut words = words.iter();
    let (mut kill_after, mut first) = (None, Signal::TERM);
    let limit = loop {
        let Some(word) = words.next().and_then(|word| word.to_str()) else {
            return Output::fail(125, "timeout: missing operand\n");
        };
        let (option, value) = match word.split_once('=') {
            Some((option, value)) => (option, Some(value)),
            None => (word, None),
        };
        match option {
            "-k" | "--kill-after" | "-s" | "--signal" => {
                let value = value.or_else(|| words.next().and_then(|word| word.to_str()));
                let value = value.unwrap_or_default();
                if option == "-k" || option == "--kill-after" {
                    kill_after = duration(value);
                } else if value.trim_start_matches("SIG") == "KILL" || value == "9" {
                    first = Signal::KILL;
                }
            }
            "--foreground" | "--preserve-status" | "-v" | "--verbose" => {}
            _ => match duration(word) {
                Some(limit) => break limit,
                None => {
                    let text = format!("timeout: invalid time interval '{word}'\n");
                    return Output::fail(125, text);
                }
            },
        }
    };
    let Some(program) = words.next() else {
        return Output::fail(125, "timeout: missing operand\n");
    };
    #[expect(clippy::disallowed_methods, reason = "timeout is there to start a program")]
    let mut command = tokio::process::Command::new(program);
    let mut child = match command.args(words).process_group(0).spawn() {
        Ok(child) => child,
        Err(error) => {
            return Output::fail(127, format!("timeout: {}: {error}\n", program.display()));
        }
    };
    let group = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
    let send = |signal| {
        if let Some(group) = group {
            let _ = kill_process_group(group, signal);
        }
    };
    let told = async {
        match signal(SignalKind::terminate()) {
            Ok(mut told) => told.recv().await,
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        status = child.wait() => {
            return match status {
                Ok(status) => Output { code: code(status), ..Output::default() },
                Err(error) => Output::fail(125, format!("timeout: {error}\n")),
            };
        }
        _ = told => {}
        () = tokio::time::sleep(if limit.is_zero() { Duration::MAX } else { limit }) => {}
    }
    send(first);
    if let Some(grace) = kill_after
        && tokio::time::timeout(grace, child.wait()).await.is_err()
    {
        send(Signal::KILL);
        let _ = child.wait().await;
        return Output { code: 137, ..Output::default() };
    }
    let _ = child.wait().await;
    Output { code: if first == Signal::KILL { 137 } else { 124 }, ..Output::default() }
}

fn code(status: std::process::ExitStatus) -> u8 {
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default());
    u8::try_from(code).unwrap_or(255)
}

/// A time such as `5`, `0.5`, `3m`.
fn duration(text: &str) -> Option<Duration> {
    let (number, unit) = match text.char_indices().last()? {
        (end, 's') => (&text[..end], 1.0),
        (end, 'm') => (&text[..end], 60.0),
        (end, 'h') => (&text[..end], 3_600.0),
        (end, 'd') => (&text[..end], 86_400.0),
        _ => (text, 1.0),
    };
    Duration::try_from_secs_f64(number.parse::<f64>().ok()? * unit).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &[&str]) -> Vec<OsString> {
        text.iter().map(OsString::from).collect()
    }

    #[tokio::test]
    async fn it_ends_as_the_gnu_program_does() {
        for (text, code) in [
            (&["5", "sh", "-c", "exit 7"][..], 7),
            (&["0.2", "sleep", "30"], 124),
            (&["-k", "0.2", "0.2", "sh", "-c", "trap '' TERM; sleep 30 & wait; wait"], 137),
            (&["soon", "true"], 125),
            (&["1"], 125),
            (&["1", "/no/such/program"], 127),
        ] {
            assert_eq!(run(&words(text)).await.code, code, "{text:?}");
        }
    }
}
