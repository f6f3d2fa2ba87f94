//! The one list of environment variables, and the one place that reads them.

use super::ConfigError;
use crate::domain::{Label, Labels};
use crate::secret::Secret;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};

/// One environment variable that podtether reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Its name.
    pub name: &'static str,
    /// What it means here.
    pub meaning: &'static str,
    /// Whether its value is a secret.
    pub secret: bool,
    /// Whether programs that podtether starts get it. The API key never reaches them (H04).
    pub inherited: bool,
}

const fn ours(name: &'static str, meaning: &'static str) -> Variable {
    Variable { name, meaning, secret: false, inherited: false }
}

const fn inherited(name: &'static str, meaning: &'static str) -> Variable {
    Variable { name, meaning, secret: false, inherited: true }
}

/// The API key's variable.
pub const API_KEY: &str = "RUNPOD_API_KEY";
/// The variable with the webhook's address.
pub const WEBHOOK_URL: &str = "PODTETHER_WEBHOOK_URL";
const CONFIG: &str = "PODTETHER_CONFIG";
const API_URL: &str = "PODTETHER_API_URL";
const STATE_DIR: &str = "PODTETHER_STATE_DIR";
const GROUP: &str = "PODTETHER_GROUP";
const AGENT: &str = "PODTETHER_AGENT";
const LOG: &str = "PODTETHER_LOG";
const TRANSPORT: &str = "PODTETHER_TRANSPORT";
const XDG_STATE_HOME: &str = "XDG_STATE_HOME";

/// Every environment variable that podtether reads. No other is read anywhere.
pub const VARIABLES: &[Variable] = &[
    Variable {
        name: API_KEY,
        meaning: "The RunPod API key; goes before the keychain.",
        secret: true,
        inherited: false,
    },
    Variable {
        name: WEBHOOK_URL,
        meaning: "The address that notices are sent to, when notify.webhook is set; goes before the keychain.",
        secret: true,
        inherited: false,
    },
    ours(CONFIG, "The config file, when --config does not name it."),
    ours(API_URL, "Base URL of the RunPod API, for tests; https, or http to this machine."),
    ours(STATE_DIR, "Where podtether keeps its records instead of the platform's state folder."),
    ours(GROUP, "The group that runs launched from here belong to."),
    ours(AGENT, "Who launches runs from here, in place of the name of an MCP client."),
    ours(LOG, "What goes to the log, such as `info` or `podtether::pod=debug`."),
    ours(TRANSPORT, "Set by podtether for rsync's remote shell: the file with its settings."),
    ours(XDG_STATE_HOME, "The platform's state folder on Linux."),
    ours("NO_COLOR", "No colours, when set to anything."),
    ours("TERM", "The terminal's kind; `dumb` has no live view."),
    inherited("HOME", "The home folder, for `~` in paths."),
    inherited("USER", "The login name: the keychain's default account."),
    inherited("LOGNAME", "The login name, when USER is not set."),
    inherited("PATH", "Where ssh, rsync and the like are found."),
    inherited("TMPDIR", "Where temporary files go."),
    inherited("SSH_AUTH_SOCK", "The SSH agent, for keys with a passphrase."),
    inherited("DBUS_SESSION_BUS_ADDRESS", "How the Secret Service is reached on Linux."),
    inherited("XDG_RUNTIME_DIR", "How the session's services are reached on Linux."),
];

/// The environment as it was when the process started. `Debug` shows no value of a secret.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Environment {
    values: BTreeMap<&'static str, OsString>,
    secrets: BTreeMap<&'static str, Secret>,
}

impl Environment {
    /// Reads [`VARIABLES`] from the process, once.
    #[must_use]
    pub fn from_process() -> Self {
        #[expect(clippy::disallowed_methods, reason = "this is the home of the environment")]
        Self::read(|name| std::env::var_os(name))
    }

    /// An environment of exactly these variables; ones that are not in [`VARIABLES`] are left out,
    /// as they would be from the process. For tests and rehearsals.
    #[must_use]
    pub fn isolated<K: AsRef<str>, V: AsRef<OsStr>>(
        variables: impl IntoIterator<Item = (K, V)>,
    ) -> Self {
        let given: BTreeMap<String, OsString> = variables
            .into_iter()
            .map(|(name, value)| (name.as_ref().to_owned(), value.as_ref().to_owned()))
            .collect();
        Self::read(|name| given.get(name).cloned())
    }

    fn read(get: impl Fn(&str) -> Option<OsString>) -> Self {
        let mut env = Self::default();
        for variable in VARIABLES {
            // An empty variable is how a shell unsets one for a child: as good as absent.
            let Some(value) = get(variable.name).filter(|value| !value.is_empty()) else {
                continue;
            };
            if variable.secret {
                if let Some(secret) = Secret::new(&value.to_string_lossy()) {
                    env.secrets.insert(variable.name, secret);
                }
            } else {
                env.values.insert(variable.name, value);
            }
        }
        env
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.values.get(name)?.to_str()
    }

    fn folder(&self, name: &str) -> Option<&Path> {
        self.values.get(name).map(Path::new)
    }

    /// The API key in `RUNPOD_API_KEY`. Only `key_source` should ask.
    #[must_use]
    pub fn api_key(&self) -> Option<&Secret> {
        self.secrets.get(API_KEY)
    }

    /// The webhook's address in `PODTETHER_WEBHOOK_URL`. Only `key_source` should ask.
    #[must_use]
    pub fn webhook_url(&self) -> Option<&Secret> {
        self.secrets.get(WEBHOOK_URL)
    }

    /// The labels in `PODTETHER_GROUP` and `PODTETHER_AGENT`, made plain where they are not: a label
    /// that will not do keeps nobody from a stop.
    #[must_use]
    pub fn labels(&self) -> Labels {
        let label = |name| self.text(name).and_then(Label::near);
        Labels { group: label(GROUP), agent: label(AGENT) }
    }

    /// The config file in `PODTETHER_CONFIG`.
    #[must_use]
    pub fn config_file(&self) -> Option<&Path> {
        self.folder(CONFIG)
    }

    /// The API's base URL in `PODTETHER_API_URL`, without a trailing slash.
    ///
    /// # Errors
    /// [`ConfigError::Variable`] when it is not a URL, or when the key would go over the network
    /// in the clear: `http` is for loopback only.
    pub fn api_url(&self) -> Result<Option<String>, ConfigError> {
        let Some(given) = self.values.get(API_URL) else { return Ok(None) };
        let given = given.to_string_lossy();
        let bad = |reason| ConfigError::Variable {
            name: API_URL,
            given: given.chars().take(200).collect(),
            reason,
            fix: "give a base URL such as http://127.0.0.1:8080, or unset it to use RunPod's own",
        };
        let url = reqwest::Url::parse(&given).map_err(|_| bad("not a URL"))?;
        if !url.username().is_empty() || url.password().is_some() || url.query().is_some() {
            return Err(ConfigError::Variable {
                name: API_URL,
                given: "(not shown)".to_owned(),
                reason: "a base URL holds no login and no query",
                fix: "give a base URL such as http://127.0.0.1:8080",
            });
        }
        let loopback = matches!(url.host_str(), Some("127.0.0.1" | "localhost" | "[::1]"));
        match url.scheme() {
            "https" => {}
            "http" if loopback => {}
            "http" => return Err(bad("http would send the API key in the clear")),
            _ => return Err(bad("not an http or https URL")),
        }
        Ok(Some(url.as_str().trim_end_matches('/').to_owned()))
    }

    /// Where podtether keeps its records: `PODTETHER_STATE_DIR`, else the platform's folder
    /// (`~/Library/Application Support/podtether`, or `podtether` in `XDG_STATE_HOME` or
    /// `~/.local/state`). `None` when neither it nor `HOME` is an absolute path.
    #[must_use]
    pub fn state_dir(&self) -> Option<PathBuf> {
        let absolute = |name| self.folder(name).filter(|path| path.is_absolute());
        if let Some(own) = absolute(STATE_DIR) {
            return Some(own.to_owned());
        }
        if cfg!(target_os = "macos") {
            return Some(absolute("HOME")?.join("Library/Application Support/podtether"));
        }
        // The XDG base directory specification: a relative path is to be ignored.
        match absolute(XDG_STATE_HOME) {
            Some(state) => Some(state.join("podtether")),
            None => Some(absolute("HOME")?.join(".local/state/podtether")),
        }
    }

    /// Whether the terminal can move its cursor, by `TERM`: one that is not set or `dumb` cannot.
    #[must_use]
    pub fn has_cursor(&self) -> bool {
        self.text("TERM").is_some_and(|term| term != "dumb")
    }

    /// The log filter in `PODTETHER_LOG`.
    #[must_use]
    pub fn log_filter(&self) -> Option<&str> {
        self.text(LOG)
    }

    /// The socket in `PODTETHER_TRANSPORT`.
    #[must_use]
    pub fn transport(&self) -> Option<&Path> {
        self.folder(TRANSPORT)
    }

    /// Whether `NO_COLOR` is set.
    #[must_use]
    pub fn no_color(&self) -> bool {
        self.values.contains_key("NO_COLOR")
    }

    /// The home folder.
    #[must_use]
    pub fn home(&self) -> Option<&Path> {
        self.folder("HOME")
    }

    /// The login name.
    #[must_use]
    pub fn user(&self) -> Option<&str> {
        self.text("USER").or_else(|| self.text("LOGNAME"))
    }

    /// The same environment with another state folder, for a run that leaves nothing at home.
    #[must_use]
    pub fn with_state_dir(mut self, folder: &Path) -> Self {
        self.values.insert(STATE_DIR, folder.as_os_str().to_owned());
        self
    }

    /// Where programs are looked for.
    #[must_use]
    pub fn path(&self) -> Option<&OsStr> {
        self.values.get("PATH").map(OsString::as_os_str)
    }

    /// The SSH agent's socket.
    #[must_use]
    pub fn ssh_auth_sock(&self) -> Option<&Path> {
        self.folder("SSH_AUTH_SOCK")
    }

    /// The whole environment of a program that podtether starts: what it needs to find its files,
    /// and never a secret (H04). Use it after `env_clear`.
    pub fn for_children(&self) -> impl Iterator<Item = (&'static str, &OsStr)> {
        VARIABLES.iter().filter(|variable| variable.inherited).filter_map(|variable| {
            Some((variable.name, self.values.get(variable.name)?.as_os_str()))
        })
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(&self.values).entries(&self.secrets).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// H04: a child never gets the key, and printing the environment does not show it.
    #[test]
    fn the_key_reaches_no_child_and_no_print() {
        let env = Environment::isolated([
            ("RUNPOD_API_KEY", "MARKER-key-1"),
            ("PODTETHER_WEBHOOK_URL", "https://ntfy.sh/MARKER-topic"),
            ("HOME", "/home/ann"),
            ("AWS_SECRET_ACCESS_KEY", "MARKER-other"),
            ("PODTETHER_CONFIG", "/x.yaml"),
        ]);
        assert_eq!(env.api_key().map(Secret::reveal), Some("MARKER-key-1"));
        let children: Vec<_> = env.for_children().collect();
        assert_eq!(children, [("HOME", OsStr::new("/home/ann"))]);
        let shown = format!("{env:?}");
        assert!(!shown.contains("MARKER"), "{shown}");
        assert!(shown.contains("RUNPOD_API_KEY") && shown.contains("/home/ann"), "{shown}");
    }

    #[test]
    fn no_secret_variable_is_inherited_and_no_name_is_listed_twice() {
        for (i, variable) in VARIABLES.iter().enumerate() {
            assert!(!(variable.secret && variable.inherited), "{}", variable.name);
            assert!(VARIABLES[..i].iter().all(|other| other.name != variable.name));
        }
    }

    #[test]
    fn an_empty_variable_is_an_absent_one() {
        let env = Environment::isolated([("RUNPOD_API_KEY", ""), ("HOME", ""), ("NO_COLOR", "")]);
        assert_eq!(env, Environment::default());
        assert_eq!(Environment::isolated([("RUNPOD_API_KEY", " \n")]).api_key(), None);
    }

    #[test]
    fn the_state_folder_is_the_own_variable_then_the_platforms() {
        let home = ("HOME", "/home/ann");
        let state =
            |variables: &[(&str, &str)]| Environment::isolated(variables.to_vec()).state_dir();
        assert_eq!(state(&[home, ("PODTETHER_STATE_DIR", "/s")]), Some("/s".into()));
        assert_eq!(state(&[("PODTETHER_STATE_DIR", "relative")]), None);
        assert_eq!(state(&[]), None);
        if cfg!(target_os = "macos") {
            let folder = "/home/ann/Library/Application Support/podtether";
            assert_eq!(state(&[home]), Some(folder.into()));
        } else {
            assert_eq!(state(&[home]), Some("/home/ann/.local/state/podtether".into()));
            assert_eq!(state(&[home, ("XDG_STATE_HOME", "/x")]), Some("/x/podtether".into()));
            let relative = state(&[home, ("XDG_STATE_HOME", "x")]);
            assert_eq!(relative, Some("/home/ann/.local/state/podtether".into()));
        }
    }

    #[test]
    fn the_key_is_never_sent_in_the_clear() {
        let url = |given: &str| Environment::isolated([("PODTETHER_API_URL", given)]).api_url();
        assert_eq!(url("http://127.0.0.1:8080/").unwrap().unwrap(), "http://127.0.0.1:8080");
        assert_eq!(url("https://rest.runpod.io/v2").unwrap().unwrap(), "https://rest.runpod.io/v2");
        assert_eq!(url("http://[::1]:1").unwrap().unwrap(), "http://[::1]:1");
        assert_eq!(Environment::default().api_url().unwrap(), None);
        for (given, reason) in [
            ("http://example.org", "in the clear"),
            ("http://127.0.0.1.example.org", "in the clear"),
            ("ftp://127.0.0.1", "not an http"),
            ("127.0.0.1:8080", "not a URL"),
            ("https://a:MARKER@example.org", "no login"),
            ("https://example.org?key=MARKER", "no login"),
        ] {
            let error = url(given).unwrap_err().to_string();
            assert!(error.contains(reason) && error.contains("PODTETHER_API_URL"), "{error}");
            assert!(!error.contains("MARKER"), "{error}");
        }
    }
}
