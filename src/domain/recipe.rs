//! Recipes: all that is particular to one training, as data. The config makes them; nothing in the
//! code knows any one of them.

use super::{Template, VehicleName};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// How one training is launched. Every path on the pod is relative to the volume's mount path, since
/// what lies elsewhere is gone at the first stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recipe {
    /// The training's name.
    pub name: String,
    /// The vehicle that it runs on; always a declared one.
    pub vehicle: VehicleName,
    /// The folder to start it in; the mount path when empty.
    pub workdir: String,
    /// The command, word by word; empty when the training only names its vehicle and cannot be launched.
    pub command: Vec<Template>,
    /// The highest seed.
    pub seed_max: u32,
    /// A marker that is there when the code respects the seed that it is given.
    pub seed_marker: Option<String>,
    /// Its levels, in the file's order; none when it has no such thing.
    pub levels: Vec<Level>,
    /// The level that is meant when none is named.
    pub default_level: Option<String>,
    /// Files that a level is written into.
    pub edits: Vec<SourceEdit>,
    /// What must, or must not, be there before a launch.
    pub gates: Vec<Marker>,
    /// What a run comes to when all is well.
    pub expect: Expected,
    /// Where its runs leave what they make.
    pub logs: RunLogs,
    /// Files of a run that must be there at its end, relative to the run's folder.
    pub artifacts: Vec<Template>,
    /// Values that other files on this machine hold too.
    pub checks: Vec<CrossCheck>,
    /// SHA-256 over the recipe's keys and values, whatever its layout and comments.
    pub sha256: String,
}

/// A level, such as of domain randomisation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Level {
    /// Its one name.
    pub name: String,
    /// Other words for it; letters are as good as capitals.
    pub aliases: Vec<String>,
    /// Field to value, character by character as it stands in the file. Never a number: one that was
    /// parsed and written again is another text.
    pub values: BTreeMap<String, String>,
}

/// A file on the pod in which a level's values stand, one to a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceEdit {
    /// The file.
    pub file: String,
    /// The fields whose values stand in it.
    pub fields: Vec<String>,
    /// How a line looks that holds one.
    pub pattern: LinePattern,
    /// Paths by which the training reads it; each must lead to this very file. With two checkouts the
    /// one is edited and the other is run.
    pub same_as: Vec<String>,
}

/// How a line looks that holds a field's value: the texts around its name and its value. White space
/// in them stands for any, or none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinePattern {
    /// Before the name, after the indentation.
    pub before: String,
    /// Between name and value.
    pub between: String,
    /// After the value, before a comment.
    pub after: String,
}

impl Level {
    /// Whether a word means this level: its name or an alias, letters as good as capitals.
    #[must_use]
    pub fn is_called(&self, word: &str) -> bool {
        let same = |own: &str| own.eq_ignore_ascii_case(word);
        same(&self.name) || self.aliases.iter().any(|alias| same(alias))
    }
}

impl LinePattern {
    /// Reads a text with `{name}` and `{value}` in it, such as `{name} = {value}`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (before, rest) = text.split_once("{name}")?;
        let (between, after) = rest.split_once("{value}")?;
        let plain = |text: &str| !text.contains(['{', '}']);
        // Without anything between them nobody can tell where a name ends.
        let is_apart = !between.is_empty();
        (plain(before) && plain(between) && plain(after) && is_apart).then(|| Self {
            before: before.trim().to_owned(),
            between: if between.trim().is_empty() { " " } else { between.trim() }.to_owned(),
            after: after.trim().to_owned(),
        })
    }
}

/// A file whose presence says something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marker {
    /// The file.
    pub path: String,
    /// Whether it must be there, or must not.
    pub must_exist: bool,
}

/// What a run comes to when all is well. For estimates and for judging afterwards; nothing is refused
/// by it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expected {
    /// Iterations.
    pub iterations: Option<u32>,
    /// The option of the command by which extra arguments change that number.
    pub iterations_option: Option<String>,
    /// Time until the first iteration, in seconds.
    pub startup_sec: Option<u32>,
    /// Time of one iteration, in milliseconds.
    pub ms_per_iteration: Option<u32>,
    /// Mean reward at the end.
    pub reward: Option<RewardRange>,
}

/// From the lowest to the highest reward, as they are written in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RewardRange {
    /// The lowest.
    pub low: String,
    /// The highest.
    pub high: String,
}

/// Where runs leave what they make.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunLogs {
    /// The folder that has one folder for each run.
    pub root: Option<String>,
    /// What a line of the log begins with that goes on with the name of the run's folder.
    pub run_line: Option<String>,
}

/// A value that stands in a YAML file on this machine as well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CrossCheck {
    /// The file, absolute.
    pub file: PathBuf,
    /// The path to the value, keys joined by dots.
    pub key: String,
    /// The level that it belongs to.
    pub level: String,
    /// The field of that level.
    pub field: String,
}

impl Recipe {
    /// Whether its command is given the seed.
    #[must_use]
    pub fn takes_seed(&self) -> bool {
        self.command.iter().flat_map(Template::placeholders).any(|hole| hole == "seed")
    }

    /// The fields that its levels give values to.
    #[must_use]
    pub fn fields(&self) -> Vec<&str> {
        self.levels
            .first()
            .map(|level| level.values.keys().map(String::as_str).collect())
            .unwrap_or_default()
    }
}
