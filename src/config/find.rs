//! Which file is the config: the flag, else the variable, else the nearest `podtether.yaml`.

use super::{ConfigError, Environment};
use std::path::{Path, PathBuf};

/// The name that is looked for.
pub const FILE_NAME: &str = "podtether.yaml";

/// Finds the config file: `explicit` (`--config`), else `PODTETHER_CONFIG`, else
/// [`FILE_NAME`] in `cwd` or the nearest folder above it. A file that was named is never replaced
/// by one that was found: a misspelt path must not pick other limits.
///
/// # Errors
/// [`ConfigError::NotFound`] or, for a named file that is not there, [`ConfigError::Unreadable`].
pub fn find(
    explicit: Option<&Path>,
    env: &Environment,
    cwd: &Path,
) -> Result<PathBuf, ConfigError> {
    let named = explicit
        .map(|path| (path, "--config"))
        .or_else(|| env.config_file().map(|path| (path, "PODTETHER_CONFIG")));
    if let Some((path, named_by)) = named {
        let path = cwd.join(path);
        if path.is_file() {
            return Ok(path);
        }
        let (reason, fix) = if path.is_dir() {
            ("it is a folder", "name the file inside it")
        } else {
            ("there is no such file", "mend the path, or copy a file from examples/ there")
        };
        let what = "the config file";
        return Err(ConfigError::Unreadable {
            what,
            path,
            named_by,
            reason: reason.to_owned(),
            fix,
        });
    }
    cwd.ancestors()
        .map(|folder| folder.join(FILE_NAME))
        .find(|path| path.is_file())
        .ok_or_else(|| ConfigError::NotFound { from: cwd.to_owned() })
}
