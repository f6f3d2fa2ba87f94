//! Paths as they stand in the file: `~` is the home folder, and what is relative is relative to
//! the file's own folder, wherever podtether was started.

use std::path::{Component, Path, PathBuf};

/// Makes a path of the file absolute and normal.
///
/// # Errors
/// What is wrong and what would do.
pub(super) fn expand(
    written: &str,
    folder: &Path,
    home: Option<&Path>,
) -> Result<PathBuf, (String, String)> {
    let path = match written.strip_prefix('~') {
        None => folder.join(written),
        Some(rest) if rest.is_empty() || rest.starts_with('/') => {
            let Some(home) = home.filter(|home| home.is_absolute()) else {
                return Err((
                    format!("{written} needs HOME, which is not set to an absolute path"),
                    "set HOME or write an absolute path".to_owned(),
                ));
            };
            home.join(rest.trim_start_matches('/'))
        }
        Some(_) => {
            return Err((
                format!("{written} names another user's home, which is not looked up"),
                "write ~/… for your own home or an absolute path".to_owned(),
            ));
        }
    };
    Ok(normal(&path))
}

/// Without `.` and `..`, by the words alone: the folders need not exist yet.
pub(super) fn normal(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                clean.pop();
            }
            other => clean.push(other),
        }
    }
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_relative_to_the_file_and_a_tilde_is_home() {
        let (folder, home) = (Path::new("/project/sub"), Some(Path::new("/home/ann")));
        for (written, path) in [
            ("logs/pod", "/project/sub/logs/pod"),
            ("./logs//pod/", "/project/sub/logs/pod"),
            ("../logs", "/project/logs"),
            ("/x/../y", "/y"),
            ("~/.ssh/id", "/home/ann/.ssh/id"),
            ("~", "/home/ann"),
            ("a~b", "/project/sub/a~b"),
            ("$HOME/x", "/project/sub/$HOME/x"),
        ] {
            assert_eq!(expand(written, folder, home), Ok(PathBuf::from(path)), "{written}");
        }
        assert!(expand("~bob/x", folder, home).unwrap_err().0.contains("another user"));
        assert!(expand("~/x", folder, None).unwrap_err().0.contains("HOME"));
    }
}
