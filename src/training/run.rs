//! From a recipe, a level, a seed and extra arguments to what is run. Pure.

use crate::domain::{
    JobName, JobNameError, Level, Recipe, Usd, UsdPerHour, join_quoted, split_words,
};
use std::time::Duration;

/// Why there is nothing to run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// The recipe only names a vehicle.
    #[error("training {0} has no command; write trainings.{0}.command in podtether.yaml")]
    NoCommand(String),
    /// A placeholder that has no value here, such as that of a level.
    #[error("the command of training {training} needs {{{hole}}}, and nothing gives it a value")]
    Hole {
        /// The training.
        training: String,
        /// The placeholder.
        hole: String,
    },
    /// Extra arguments that are no words.
    #[error(
        "extra_args={0:?} has an open quote or a character that no command line takes; they are split into words as a shell would, and nothing in them is expanded"
    )]
    Words(String),
    /// Extra arguments that change what the recipe fills in. The last of an option counts to nearly every
    /// program, so the run would be another than its name and its record say.
    #[error(
        "extra_args give {option} again, which training {training} fills with {{{hole}}}: the run would not be what its name and record say; {instead}"
    )]
    Again {
        /// The training.
        training: String,
        /// The option.
        option: String,
        /// The placeholder that gives it its value.
        hole: String,
        /// What to do instead.
        instead: &'static str,
    },
    /// The job's name.
    #[error(transparent)]
    Name(#[from] JobNameError),
}

/// What is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// The job's name, `train-<training>-<level>-s<seed>`.
    pub name: JobName,
    /// The command, word by word.
    pub words: Vec<String>,
    /// How many iterations it is expected to have.
    pub iterations: Option<u32>,
}

impl Run {
    /// The words as one line, which a shell splits into these very words again.
    #[must_use]
    pub fn command(&self) -> String {
        join_quoted(self.words.iter().map(String::as_str))
    }
}

/// Words that a person gave; `None` when they are none.
fn extra_words(text: &str) -> Option<Vec<String>> {
    split_words(text).filter(|words| words.iter().all(|word| !word.contains('\0')))
}

/// What a recipe runs with this level and seed; `mount` is where the volume is on the pod.
///
/// # Errors
/// [`RunError`].
pub fn run(
    recipe: &Recipe,
    level: Option<&Level>,
    seed: u32,
    extra_args: &str,
    mount: &str,
) -> Result<Run, RunError> {
    if recipe.command.is_empty() {
        return Err(RunError::NoCommand(recipe.name.clone()));
    }
    let level_name = level.map_or("none", |level| level.name.as_str());
    let value = |hole: &str| match hole {
        "seed" => Some(seed.to_string()),
        "level" => Some(level_name.to_owned()),
        "training" => Some(recipe.name.clone()),
        "vehicle" => Some(recipe.vehicle.0.clone()),
        "mount" => Some(mount.trim_end_matches('/').to_owned()),
        field => level?.values.get(field).cloned(),
    };
    let mut words = recipe
        .command
        .iter()
        .map(|word| word.fill(value))
        .collect::<Result<Vec<_>, _>>()
        .map_err(|hole| RunError::Hole { training: recipe.name.clone(), hole })?;
    let extra = extra_words(extra_args)
        .ok_or_else(|| RunError::Words(extra_args.chars().take(200).collect()))?;
    if let Some(error) = given_again(recipe, &extra) {
        return Err(error);
    }
    // The last one counts, as it does to argparse.
    let changed = recipe.expect.iterations_option.as_deref().and_then(|option| {
        let value = |(at, word): (usize, &String)| match word.strip_prefix(option)? {
            "" => extra.get(at + 1).cloned(),
            rest => rest.strip_prefix('=').map(str::to_owned),
        };
        extra.iter().enumerate().rev().find_map(value)?.parse().ok()
    });
    words.extend(extra);
    let of_level = match level {
        Some(level) => format!("-{}", level.name.to_lowercase().replace('_', "-")),
        None => String::new(),
    };
    Ok(Run {
        name: JobName::parse(&format!("train-{}{of_level}-s{seed}", recipe.name))?,
        words,
        iterations: changed.or(recipe.expect.iterations),
    })
}

/// Whether extra arguments give again what a placeholder of the command gives: `--seed {seed}`,
/// `--seed={seed}`, `env.noise={noise}`.
fn given_again(recipe: &Recipe, extra: &[String]) -> Option<RunError> {
    let before = std::iter::once(None).chain(recipe.command.iter().map(Some));
    before.zip(&recipe.command).find_map(|(before, word)| {
        let hole = word.placeholders().next()?;
        let option = match word.before_placeholder()? {
            "" => before?.source(),
            text => text.strip_suffix('=')?,
        };
        let is_option = option.starts_with('-') && !option.contains('=');
        let again = |given: &String| match given.strip_prefix(option) {
            Some("") => is_option,
            Some(rest) => rest.starts_with('='),
            None => false,
        };
        // What stands before a value of its own and is no option gives it no name.
        (is_option || word.before_placeholder() != Some("")).then_some(())?;
        extra.iter().any(again).then(|| RunError::Again {
            training: recipe.name.clone(),
            option: option.to_owned(),
            hole: hole.to_owned(),
            instead: match hole {
                "seed" => "give it as seed",
                "level" => "give it as dr_level (--dr)",
                _ if recipe.fields().contains(&hole) => {
                    "choose the level that has it, or add one to the recipe"
                }
                _ => "leave it out",
            },
        })
    })
}

/// What a run is expected to take, by its recipe; `None` when the recipe does not say.
#[must_use]
pub fn expected_time(recipe: &Recipe, iterations: Option<u32>) -> Option<Duration> {
    let each = Duration::from_millis(u64::from(recipe.expect.ms_per_iteration?));
    let startup = Duration::from_secs(u64::from(recipe.expect.startup_sec.unwrap_or(0)));
    each.checked_mul(iterations?)?.checked_add(startup)
}

/// What that costs at this price.
#[must_use]
pub fn expected_cost(time: Duration, rate: UsdPerHour) -> Usd {
    rate.cost_of(time)
}

/// The names of a run's artifacts.
#[must_use]
pub fn artifacts(recipe: &Recipe, seed: u32, iterations: Option<u32>) -> Vec<String> {
    let value = |hole: &str| match hole {
        "seed" => Some(seed.to_string()),
        "iterations" => iterations.map(|n| n.to_string()),
        // Counted from 0 (rsl_rl: model_399.pt of 400).
        "last" => iterations.map(|n| n.saturating_sub(1).to_string()),
        _ => None,
    };
    // One whose name nobody knows cannot be missed.
    recipe.artifacts.iter().filter_map(|name| name.fill(value).ok()).collect()
}

/// The name of a run's folder, by the line of a log that tells it: what follows `line` there, of a path
/// its last part. The last such line counts.
#[must_use]
pub fn run_folder(log: &str, line: &str) -> Option<String> {
    let told = log.lines().rev().find_map(|text| Some(text.split_once(line)?.1.trim()))?;
    let name = told.trim_end_matches('/').rsplit('/').next()?;
    let is_plain =
        !name.is_empty() && name != "." && name != ".." && !name.chars().any(char::is_control);
    is_plain.then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Template;
    use crate::training::sample;

    #[test]
    fn a_run_is_words_and_a_name_of_training_level_and_seed() {
        let recipe = sample::curee();
        let run = |level: usize, extra: &str| {
            super::run(&recipe, recipe.levels.get(level), 1, extra, "/workspace")
        };
        let plain = run(2, "").unwrap();
        assert_eq!(plain.name.as_str(), "train-curee-dr-2-s1");
        assert_eq!(
            (plain.command().as_str(), plain.iterations),
            ("./train.sh --seed 1", Some(400))
        );
        let more = run(0, "--max_iterations 2500 env.rew_scale_pos=0.25").unwrap();
        assert_eq!(more.iterations, Some(2500));
        assert_eq!(more.words[3..], ["--max_iterations", "2500", "env.rew_scale_pos=0.25"]);
        assert_eq!(run(0, "--max_iterations=50").unwrap().iterations, Some(50));
        // Given several times, the last one is what the program takes.
        for (extra, iterations) in [
            ("--max_iterations 9 --max_iterations 7", 7),
            ("--max_iterations=9 --max_iterations 7", 7),
            ("--max_iterations 9 --max_iterations=7", 7),
        ] {
            assert_eq!(run(0, extra).unwrap().iterations, Some(iterations), "{extra}");
        }
        assert_eq!(expected_time(&recipe, Some(400)), Some(Duration::from_secs(128)));
    }

    #[test]
    fn the_log_names_the_folder_of_a_run() {
        let line = "name requested from command line:";
        let of = |log: &str| run_folder(log, line);
        assert_eq!(
            of(&format!("a\n[INFO] Exact {line} 2026-07-16_10-00-00\nb")).as_deref(),
            Some("2026-07-16_10-00-00")
        );
        assert_eq!(of(&format!("{line} /w/logs/one/\n{line} two")).as_deref(), Some("two"));
        assert_eq!(of(&format!("{line} /w/logs/one/")).as_deref(), Some("one"));
        for log in ["", "x", &format!("{line} .."), &format!("{line} ")] {
            assert_eq!(of(log), None, "{log}");
        }
    }

    /// H03: extra arguments are words, never a piece of a shell's text.
    #[test]
    fn nothing_in_extra_arguments_is_run() {
        let recipe = sample::curee();
        let run = |extra: &str| super::run(&recipe, recipe.levels.first(), 1, extra, "/w");
        let hostile = run("; rm -rf / && $(id) `id` > x | y 'a b' #z").unwrap();
        assert_eq!(
            hostile.command(),
            "./train.sh --seed 1 ';' rm -rf / '&&' '$(id)' '`id`' '>' x '|' y 'a b' '#z'"
        );
        assert!(matches!(run("it's"), Err(RunError::Words(_))));
        assert!(matches!(run("a\0b"), Err(RunError::Words(_))));
    }

    /// A seed that is given behind the recipe's would be the one that counts, and the record would name
    /// the other.
    #[test]
    fn extra_arguments_do_not_give_again_what_the_recipe_fills_in() {
        let mut recipe = sample::curee();
        let command =
            "./t --seed {seed} -r={com_to_cob_offset_radius} env.x={volume_range} {level} --n 3";
        recipe.command = command.split(' ').map(|word| Template::parse(word).unwrap()).collect();
        let run = |extra: &str| super::run(&recipe, recipe.levels.get(1), 3, extra, "/w");
        for (extra, says) in [
            ("--seed 7", "extra_args give --seed again, which training curee fills with {seed}"),
            ("--n 4 --seed=7", "give it as seed"),
            ("-r 0.5", "-r again"),
            ("-r=0.5", "choose the level that has it"),
            ("env.x=1", "env.x again"),
        ] {
            let error = run(extra).unwrap_err().to_string();
            assert!(error.contains(says), "{extra}: {error}");
        }
        for extra in ["--n 4", "--seeds 7", "seed=7", "env.xy=1", "DR_2", "env.x"] {
            assert!(run(extra).is_ok(), "{extra}");
        }
    }

    #[test]
    fn a_placeholder_is_filled_within_its_word() {
        let mut recipe = sample::curee();
        let words = ["t", "{mount}/{training}", "--r={com_to_cob_offset_radius}", "{level}{{}}"];
        recipe.command = words.iter().map(|word| Template::parse(word).unwrap()).collect();
        let run = super::run(&recipe, recipe.levels.get(1), 3, "", "/work space/").unwrap();
        assert_eq!(run.words, ["t", "/work space/curee", "--r=0.025", "DR_1{}"]);
        assert!(matches!(super::run(&recipe, None, 3, "", "/w"), Err(RunError::Hole { .. })));
        recipe.command.clear();
        assert!(matches!(super::run(&recipe, None, 3, "", "/w"), Err(RunError::NoCommand(_))));
    }
}
