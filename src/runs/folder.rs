//! Which folder is a run's: by the line of its log that names it, held against what was in the folder
//! of all runs before the launch and after the end.

/// Names beyond which more is only counted.
pub const LISTED: usize = 16;

/// What a listing after the run showed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// How many folders there are.
    pub count: u64,
    /// Those whose names come after the last one that was there before the launch, at most 16.
    pub newer: Vec<String>,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FolderFound {
    /// The folder's name, when it is known.
    pub run_dir: Option<String>,
    /// Whether it was not there before; `None` when nobody knows.
    pub is_new: Option<bool>,
    /// How it was found, or why it was not, in a sentence.
    pub told: String,
}

/// Whether a text may be the name of a run's folder. It becomes part of paths and of what people and
/// agents type, so it is letters, digits and a few signs, and begins with none that an option or a
/// hidden file begins with.
#[must_use]
pub fn is_folder_name(name: &str) -> bool {
    let plain = |c: char| c.is_alphanumeric() || " ._-+=,:@#%".contains(c);
    let starts_well = name.starts_with(|c: char| c.is_alphanumeric() || c == '_');
    starts_well && name.len() <= 200 && name.trim() == name && name.chars().all(plain)
}

/// Whether a folder is the one that the log names: by its whole name, or with a run's own behind it
/// (Isaac Lab's train.py: `<time>_<run name>`).
fn is_meant(name: &str, folder: &str) -> bool {
    folder.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
}

/// Holds the name in the log against the listings. `line` is what the log's line begins with, by the
/// recipe; `before` is how many folders there were and the last of their names.
#[must_use]
pub fn judge_folder(
    line: Option<&str>,
    named: Option<&str>,
    before: Option<(u64, Option<&str>)>,
    after: Option<&Listing>,
) -> FolderFound {
    let unsure = |told: String| FolderFound { run_dir: None, is_new: None, told };
    let Some((listing, (count, last))) = after.zip(before) else {
        return match named {
            Some(name) => FolderFound {
                run_dir: Some(name.to_owned()),
                is_new: last_tells(name, before),
                told: format!(
                    "the run's folder is {name}, by the log's line alone; the pod's folders were not compared"
                ),
            },
            None => unsure(no_line(line, None)),
        };
    };
    let more = i128::from(listing.count) - i128::from(count);
    let newer = &listing.newer;
    let list = || match newer.len() {
        0 => "none".to_owned(),
        LISTED => format!("{} and perhaps more", newer.join(", ")),
        _ => newer.join(", "),
    };
    let Some(name) = named else {
        return match (line, &newer[..]) {
            // The recipe names no line, so the listing is all there is.
            (None, [one]) if more == 1 => FolderFound {
                run_dir: Some(one.clone()),
                is_new: Some(true),
                told: format!(
                    "the run's folder is {one}, the one that is new since the launch; the recipe names no logs.run_line"
                ),
            },
            _ => unsure(no_line(line, Some(list()))),
        };
    };
    let meant: Vec<&String> = newer.iter().filter(|folder| is_meant(name, folder)).collect();
    match (&meant[..], more) {
        ([one], 1) if newer.len() == 1 => FolderFound {
            run_dir: Some((*one).clone()),
            is_new: Some(true),
            told: format!(
                "the run's folder is {one}: the log names it, and it is the one that is new since the launch"
            ),
        },
        ([one], _) => FolderFound {
            run_dir: Some((*one).clone()),
            is_new: Some(true),
            told: format!(
                "the run's folder is {one}, which the log names; it is not the only change since the launch: {more:+} folders, new are {}",
                list()
            ),
        },
        ([], _) if newer.is_empty() && last == Some(name) => FolderFound {
            run_dir: Some(name.to_owned()),
            is_new: Some(false),
            told: format!(
                "the log names {name}, which was there before the launch; no folder is new"
            ),
        },
        ([], _) => unsure(format!(
            "the log names {name}, and no folder that is new since the launch has that name; new are: {}",
            list()
        )),
        (several, _) => unsure(format!(
            "the log names {name}, and {} new folders could be it: {}",
            several.len(),
            list()
        )),
    }
}

fn no_line(line: Option<&str>, newer: Option<String>) -> String {
    let newer = newer.map_or_else(String::new, |list| format!("; new since the launch: {list}"));
    match line {
        Some(line) => format!(
            "the run's folder is not known: the log has no line with {line:?} and a plain name{newer}"
        ),
        None => format!("the run's folder is not known: the recipe names no logs.run_line{newer}"),
    }
}

/// Whether a folder was not there before, by the last of the names that were.
fn last_tells(name: &str, before: Option<(u64, Option<&str>)>) -> Option<bool> {
    let (count, last) = before?;
    if count == 0 {
        return Some(true);
    }
    match name.cmp(last?) {
        std::cmp::Ordering::Greater => Some(true),
        std::cmp::Ordering::Equal => Some(false),
        // Nobody knows the other names.
        std::cmp::Ordering::Less => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: Option<&str> = Some("run folder:");
    const BEFORE: Option<(u64, Option<&str>)> = Some((1, Some("2026-07-16")));

    fn after(count: u64, newer: &[&str]) -> Option<Listing> {
        Some(Listing { count, newer: newer.iter().map(|name| (*name).to_owned()).collect() })
    }

    fn judged(
        named: Option<&str>,
        after: Option<Listing>,
    ) -> (Option<String>, Option<bool>, String) {
        let found = judge_folder(LINE, named, BEFORE, after.as_ref());
        (found.run_dir, found.is_new, found.told)
    }

    #[test]
    fn the_folder_is_the_one_new_one_that_the_log_names() {
        for folder in ["2026-07-17", "2026-07-17_mine"] {
            let (run_dir, is_new, told) = judged(Some("2026-07-17"), after(2, &[folder]));
            assert_eq!((run_dir.as_deref(), is_new), (Some(folder), Some(true)));
            assert!(told.contains("the one that is new"), "{told}");
        }
    }

    /// Doubt is said, never guessed away.
    #[test]
    fn a_line_and_a_listing_that_do_not_agree_are_told() {
        for (named, listing, run_dir, says) in [
            (Some("a"), after(2, &["2026-07-17"]), None, "no folder that is new"),
            (
                Some("2026-07-17"),
                after(3, &["2026-07-17", "2026-07-18"]),
                Some("2026-07-17"),
                "+2 folders",
            ),
            (Some("x"), after(3, &["x_1", "x_2"]), None, "2 new folders could be it"),
            (Some("2026-07-16"), after(1, &[]), Some("2026-07-16"), "was there before"),
            (Some("2026-07-17"), after(1, &[]), None, "new are: none"),
            (None, after(2, &["2026-07-17"]), None, "has no line"),
            (None, None, None, "has no line"),
            (Some("2026-07-17"), None, Some("2026-07-17"), "by the log's line alone"),
        ] {
            let (found, _, told) = judged(named, listing);
            assert_eq!(found.as_deref(), run_dir, "{named:?}: {told}");
            assert!(told.contains(says), "{told}");
        }
        // Without a line in the recipe, exactly one new folder is believed.
        let found = judge_folder(None, None, BEFORE, after(2, &["n"]).as_ref());
        assert_eq!((found.run_dir.as_deref(), found.is_new), (Some("n"), Some(true)));
        let two = judge_folder(None, None, BEFORE, after(3, &["n", "o"]).as_ref());
        assert_eq!(two.run_dir, None);
    }

    /// H03: what a pod names is checked before it becomes part of a path or a command.
    #[test]
    fn a_folders_name_is_plain() {
        for good in ["2026-07-17_09-00-00_mine", "_x", "run 1", "a=b,c", "Übung"] {
            assert!(is_folder_name(good), "{good}");
        }
        let long = "x".repeat(201);
        for bad in
            ["", ".", "..", "-rf", ".x", "a/b", "$(id)", "a;b", "a\nb", "\u{1b}[2J", "a ", &long]
        {
            assert!(!is_folder_name(bad), "{bad:?}");
        }
    }
}
