//! Ends a command on a pod that took too long, and says what came of it.

use crate::domain::{RemoteCommand, scripts};
use crate::pod::jobs::Answer;
use crate::pod::{ExecLimits, Shell};
use std::time::Duration;

/// Between TERM and KILL.
const GRACE_SEC: u32 = 3;
/// For all of it, with a link that is slow.
const LIMITS: ExecLimits =
    ExecLimits { timeout: Duration::from_secs(12), stdout_bytes: 4 * 1024, stderr_bytes: 4 * 1024 };

/// Ends what was run through `run_in.sh` with `mark`; the answer is a sentence for people. An SSH server
/// delivers no signals for root, so this takes a second command (facts on SSH, measured).
pub(super) async fn end_exec(shell: &dyn Shell, mark: &str) -> String {
    let args = [mark.to_owned(), GRACE_SEC.to_string()];
    let command = RemoteCommand::script(scripts::END_EXEC, args);
    let told = match shell.run(&command, LIMITS).await {
        Ok(output) => Answer::read(scripts::END_EXEC.name, &output).and_then(|answer| {
            let number = |key| answer.number(key).map(Option::unwrap_or_default);
            Ok((number("found")?, number("left")?, number("away")?))
        }),
        Err(error) => return format!("It could not be ended and may still run: {error}."),
    };
    match told {
        Ok((found, left, away)) => {
            let mut text = match (found, left) {
                (0, _) => "Nothing of it runs on the pod any more.".to_owned(),
                (found, 0) => format!("It was ended on the pod ({found} processes)."),
                (found, left) => {
                    format!("Of its {found} processes {left} could not be ended and still run.")
                }
            };
            if away > 0 {
                text.push_str(&format!(
                    " {away} processes that took a session of their own were left running."
                ));
            }
            text
        }
        Err(error) => format!("It could not be ended and may still run: {error}."),
    }
}
