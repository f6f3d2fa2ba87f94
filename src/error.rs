//! Failures as the faces tell them: a closed list of kinds, what to do, and whether something bills.

use crate::cloud::{CloudError, CloudErrorKind};
use crate::guard::Refusal;
use crate::pod::{ShellError, ShellErrorKind};
use std::fmt;

/// The closed list of kinds. Part of the contract: scripts and agents branch on these words.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Hash,
    serde::Serialize,
    serde::Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// A guardrail said no. Nothing was changed.
    Refused,
    /// An argument is wrong. Nothing was changed.
    BadInput,
    /// The config file is missing or wrong. Nothing was changed.
    Config,
    /// No key was found, or the provider does not accept it.
    Auth,
    /// The key may not do this.
    Forbidden,
    /// The provider does not know it, or does not show it to this key.
    NotFound,
    /// No machine is free.
    NoCapacity,
    /// The account's balance does not allow it.
    Balance,
    /// The provider asks to slow down.
    RateLimited,
    /// This version of the provider's API is gone.
    ApiRetired,
    /// The action is not valid for the present status.
    Conflict,
    /// The provider answered with an error, or with something that is no answer.
    Provider,
    /// The provider could not be reached.
    Network,
    /// Nobody knows yet whether a change took effect.
    Unconfirmed,
    /// The vehicle has no running pod.
    NoPod,
    /// The pod runs, its shell cannot be reached yet or any more.
    SshUnreachable,
    /// The pod's host key is not the pinned one.
    HostKey,
    /// The pod does not accept the SSH key, or the key file cannot be used.
    SshAuth,
    /// It took too long. It may still run.
    Timeout,
    /// Files did not come over whole.
    Transfer,
    /// A command of podtether's own failed on the pod.
    PodCommand,
    /// A mistake of podtether's own.
    Internal,
}

impl FailureKind {
    /// Whether it is the provider that did not answer a question, or not to this key: a pod that is known
    /// may be reached all the same.
    #[must_use]
    pub const fn is_of_provider(self) -> bool {
        matches!(
            self,
            Self::Auth
                | Self::Forbidden
                | Self::RateLimited
                | Self::ApiRetired
                | Self::Provider
                | Self::Network
        )
    }

    /// The stable word.
    #[must_use]
    pub fn as_str(self) -> String {
        serde_json::to_value(self)
            .ok()
            .and_then(|value| value.as_str().map(str::to_owned))
            .unwrap_or_default()
    }
}

/// Whether something is still on the bill after a failure.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum StillBilling {
    /// The vehicle's pod bills.
    Yes,
    /// Nothing was started.
    No,
    /// Nobody knows; take it for yes.
    Unknown,
}

/// A call that did not do what it was asked, as data.
#[derive(
    Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
pub struct Failure {
    /// The kind.
    pub kind: FailureKind,
    /// What was tried and why it failed.
    pub message: String,
    /// What to do.
    pub hint: String,
    /// Whether the same call may succeed later.
    pub retryable: bool,
    /// Whether something is still on the bill.
    pub still_billing: StillBilling,
}

impl Failure {
    /// A failure that nothing on the bill depends on.
    pub fn new(kind: FailureKind, message: impl fmt::Display, hint: impl fmt::Display) -> Self {
        Self {
            kind,
            message: message.to_string(),
            hint: hint.to_string(),
            retryable: false,
            still_billing: StillBilling::No,
        }
    }

    /// A wrong argument.
    pub fn bad_input(message: impl fmt::Display) -> Self {
        Self::new(
            FailureKind::BadInput,
            message,
            "correct the argument and call again; nothing was changed",
        )
    }

    /// Without its word on the bill: for records that are read later, when another one holds.
    #[must_use]
    pub fn apart_from_the_bill(&self) -> String {
        match self.hint.is_empty() {
            true => format!("{} ({})", self.message, self.kind.as_str()),
            false => format!("{} ({})\n  {}", self.message, self.kind.as_str(), self.hint),
        }
    }

    /// The same failure, marked as worth trying again.
    #[must_use]
    pub const fn retryable(mut self) -> Self {
        self.retryable = true;
        self
    }

    /// The same failure with what is known of the bill.
    #[must_use]
    pub const fn billing(mut self, still_billing: StillBilling) -> Self {
        self.still_billing = still_billing;
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.apart_from_the_bill())?;
        match self.still_billing {
            StillBilling::Yes => f.write_str("\n  still billing: yes"),
            StillBilling::Unknown => f.write_str("\n  still billing: unknown, take it for yes"),
            StillBilling::No => Ok(()),
        }
    }
}

impl std::error::Error for Failure {}

impl From<Vec<Refusal>> for Failure {
    fn from(refusals: Vec<Refusal>) -> Self {
        let message = match &refusals[..] {
            [only] => format!("refused: {only}"),
            many => {
                let lines: Vec<String> = many
                    .iter()
                    .enumerate()
                    .map(|(i, refusal)| format!("({}) {refusal}", i + 1))
                    .collect();
                format!("refused for {} reasons: {}", many.len(), lines.join(" "))
            }
        };
        // Of all refusals only this one passes by itself.
        let passes = |refusal: &Refusal| matches!(refusal, Refusal::CreateUnaccounted { .. });
        let retryable = refusals.iter().all(passes);
        let hint = match retryable {
            true => {
                "nothing was changed by this call; wait as it says, and take what was asked for as billing until then"
            }
            false => "nothing was changed; mend what the refusal names, or ask a person",
        };
        Self { retryable, ..Self::new(FailureKind::Refused, message, hint) }
    }
}

impl From<CloudError> for Failure {
    fn from(error: CloudError) -> Self {
        use CloudErrorKind as Kind;
        let (kind, hint) = match &error.kind {
            Kind::Auth => (
                FailureKind::Auth,
                "the provider does not accept the API key; store a valid one (see README, \"The key\")",
            ),
            Kind::Forbidden => (
                FailureKind::Forbidden,
                "the API key may not do this; give it read and write access to pods in the RunPod console",
            ),
            Kind::Edge => (
                FailureKind::Provider,
                "the edge in front of the API answered, not the API; this says nothing about the key. Try again",
            ),
            Kind::NotFound => (
                FailureKind::NotFound,
                "the provider does not know it or does not show it to this key",
            ),
            Kind::NoCapacity => (
                FailureKind::NoCapacity,
                "no machine is free; try again later, or allow another GPU type or data centre in the config",
            ),
            Kind::Balance => (FailureKind::Balance, "top up the account in the RunPod console"),
            Kind::RateLimited(_) => (FailureKind::RateLimited, "wait and call again"),
            Kind::Retired => (
                FailureKind::ApiRetired,
                "this version of the provider's API is gone; update podtether. Pods may still run: look in the RunPod console",
            ),
            Kind::Conflict => (
                FailureKind::Conflict,
                "ask pod_status for the present status; a locked pod is unlocked in the RunPod console",
            ),
            Kind::Validation => (
                FailureKind::Provider,
                "the provider rejects the request; this is for podtether or its config to mend, do not retry",
            ),
            Kind::Server | Kind::Malformed => {
                (FailureKind::Provider, "the provider is in trouble; try again")
            }
            Kind::Network { .. } => (
                FailureKind::Network,
                "the provider could not be reached; check the network and try again",
            ),
        };
        // Whoever could not ask the provider does not know what bills.
        let still_billing = StillBilling::Unknown;
        let retryable = error.is_transient() || matches!(error.kind, Kind::NoCapacity);
        let mut message = error.to_string();
        if let Some(id) = &error.request_id {
            message = format!("{message} (request {id})");
        }
        Self { retryable, still_billing, ..Self::new(kind, message, hint) }
    }
}

impl From<ShellError> for Failure {
    /// A pod whose shell fails is a pod that runs, so it bills.
    fn from(error: ShellError) -> Self {
        use ShellErrorKind as Kind;
        let (kind, hint, retryable) = match error.kind {
            Kind::NoEndpoint => (
                FailureKind::SshUnreachable,
                "the pod has no direct SSH endpoint yet; call ensure_pod again. The provider's SSH proxy is never used: it can run no commands",
                true,
            ),
            Kind::Refused | Kind::Unreachable | Kind::Handshake => (
                FailureKind::SshUnreachable,
                "the pod may still be booting; call ensure_pod or pod_status",
                true,
            ),
            Kind::Identity => (
                FailureKind::SshUnreachable,
                "the address may be an old one that is somebody else's now; call ensure_pod, which reads it anew",
                true,
            ),
            Kind::HostKey => (
                FailureKind::HostKey,
                "another machine may answer at this address. Stop the pod with stop_pod; do not send it anything",
                false,
            ),
            Kind::Auth => (
                FailureKind::SshAuth,
                "the pod was created with another SSH key than ssh_identity; terminate it and call ensure_pod, or set ssh_identity to the right key",
                false,
            ),
            Kind::Local => (FailureKind::SshAuth, "mend the file that the message names", false),
            Kind::Lost => (
                FailureKind::SshUnreachable,
                "the connection was lost; what was running may have run on. Ask job_status or pod_status",
                true,
            ),
            Kind::Timeout => (
                FailureKind::Timeout,
                "what was running may still run; use run_job for long work",
                true,
            ),
        };
        Self { retryable, ..Self::new(kind, error, hint).billing(StillBilling::Yes) }
    }
}
