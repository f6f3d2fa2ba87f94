//! The stand-in setsid, for macOS, which has none.

use super::Output;
use crate::cloud::local::pod::Folder;
use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::Path;

/// Runs `setsid [-f] [-w] COMMAND…` in a new session. `words` begins with the program's own name.
///
/// The leader of a process group cannot leave its session, so it starts itself once more, as
/// util-linux's forks.
pub fn run(pod: &Path, words: &[OsString]) -> Output {
    let command: Vec<&OsString> = words
        .iter()
        .skip(1)
        .skip_while(|word| {
            word.to_str().is_some_and(|word| ["-f", "-w", "--fork", "--wait"].contains(&word))
        })
        .collect();
    let Some((program, arguments)) = command.split_first() else {
        return Output::fail(1, "setsid: no command specified\n");
    };
    #[expect(clippy::disallowed_methods, reason = "setsid is there to start a program")]
    let mut next = std::process::Command::new(program);
    next.args(arguments);
    match rustix::process::setsid() {
        Ok(session) => {
            let record = Folder::new(pod.to_owned()).groups();
            let _ = std::fs::File::create(record.join(session.as_raw_nonzero().to_string()));
            let error = next.exec();
            Output::fail(127, format!("setsid: {}: {error}\n", program.display()))
        }
        Err(rustix::io::Errno::PERM) => again(pod, words),
        Err(error) => Output::fail(1, format!("setsid: {error}\n")),
    }
}

fn again(pod: &Path, words: &[OsString]) -> Output {
    let wait = words.iter().any(|word| word == "-w" || word == "--wait");
    let failed = |error: std::io::Error| Output::fail(1, format!("setsid: {error}\n"));
    let program = match std::env::current_exe() {
        Ok(program) => program,
        Err(error) => return failed(error),
    };
    #[expect(clippy::disallowed_methods, reason = "setsid is there to start a program")]
    let mut command = std::process::Command::new(program);
    match command.args(["pod-shim", "--pod"]).arg(pod).args(words).spawn() {
        Ok(mut child) if wait => {
            let code = child.wait().ok().and_then(|status| status.code());
            Output {
                code: code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1),
                ..Output::default()
            }
        }
        Ok(_) => Output::default(),
        Err(error) => failed(error),
    }
}
