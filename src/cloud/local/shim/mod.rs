//! Programs of a pod that a laptop lacks or must not lend: runpodctl, nvidia-smi, apt-get, setsid,
//! timeout.

mod apt_get;
mod nvidia_smi;
mod runpodctl;
mod setsid;
mod timeout;

use std::ffi::OsString;
use std::path::Path;

/// What a stand-in writes, and its exit code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// For stdout.
    pub out: String,
    /// For stderr.
    pub err: String,
    /// Exit code.
    pub code: u8,
}

impl Output {
    fn say(out: impl Into<String>) -> Self {
        Self { out: out.into(), ..Self::default() }
    }

    fn fail(code: u8, err: impl Into<String>) -> Self {
        Self { err: err.into(), code, ..Self::default() }
    }
}

/// Runs the stand-in `words[0]` with the arguments after it, for the pod whose folder is `pod`.
/// `key` is `RUNPOD_API_KEY` of the caller's environment.
pub async fn run(pod: &Path, words: &[OsString], key: Option<&str>) -> Output {
    let Some((name, arguments)) = words.split_first() else {
        return Output::fail(2, "no program named");
    };
    let text: Vec<String> =
        arguments.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let text: Vec<&str> = text.iter().map(String::as_str).collect();
    match name.to_str() {
        Some("runpodctl") => runpodctl::run(pod, &text, key).await,
        Some("nvidia-smi") => nvidia_smi::run(pod, &text),
        Some("apt-get") => apt_get::run(pod, &text),
        Some("setsid") => setsid::run(pod, words),
        Some("timeout") => timeout::run(arguments).await,
        _ => Output::fail(2, format!("there is no stand-in {}", name.to_string_lossy())),
    }
}
