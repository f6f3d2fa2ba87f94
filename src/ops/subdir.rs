//! Folders of a pod's volume, as whoever asks for one names them.

use crate::error::Failure;

/// D08, H03: a folder below the mount path, and nothing that could lead out of it.
pub(crate) fn checked_subdir(subdir: &str) -> Result<String, Failure> {
    let trimmed = subdir.trim_matches('/');
    let bad = trimmed.is_empty()
        || subdir.starts_with('/')
        || subdir.chars().any(char::is_control)
        || trimmed
            .split('/')
            .any(|part| part.is_empty() || part == "." || part == ".." || part.starts_with('-'));
    if bad {
        let shown: String = subdir.chars().take(200).collect();
        return Err(Failure::bad_input(format!(
            "subdir={shown:?} is not a folder below the mount path; give a relative path such as \"jobs\" or \"IsaacLab/logs\""
        )));
    }
    Ok(trimmed.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subdir_never_leads_out_of_the_volume() {
        for bad in ["", "/", "/etc", "..", "a/../b", "./a", "a//b", "-rf", "a/-x", "a\nb"] {
            assert!(checked_subdir(bad).is_err(), "{bad:?}");
        }
        for (given, used) in [("jobs", "jobs"), ("a/b c/", "a/b c"), ("it's/$(x)", "it's/$(x)")] {
            assert_eq!(checked_subdir(given).unwrap(), used);
        }
    }
}
