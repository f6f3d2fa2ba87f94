//! The section `notify`: where people are told. It holds no address, since an address is a secret.

/// Where the address of a webhook is kept, for advice.
pub(super) const WHERE_THE_ADDRESS_GOES: &str = "the address is a secret and is kept in the keychain or in PODTETHER_WEBHOOK_URL, never in this file";

/// What a webhook's receiver understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WebhookShape {
    /// ntfy's JSON, as <https://docs.ntfy.sh/publish/#publish-as-json> has it.
    Ntfy,
    /// Slack's incoming webhooks, which Mattermost, Rocket.Chat and Discord (`/slack`) read too.
    Slack,
}

impl WebhookShape {
    /// The word of it, as [`Self::parse`] reads it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ntfy => "ntfy",
            Self::Slack => "slack",
        }
    }

    /// The shape of that name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "ntfy" => Some(Self::Ntfy),
            "slack" => Some(Self::Slack),
            _ => None,
        }
    }
}

/// Where people are told. With neither nobody is, and nothing is looked up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Notify {
    /// On this computer's screen.
    pub desktop: bool,
    /// By a webhook of this shape.
    pub webhook: Option<WebhookShape>,
}
