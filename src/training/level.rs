//! Which level a word means.

use crate::domain::{Level, Recipe, nearest};

/// A word that means no level of this training. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LevelError {
    /// None of its levels is called so.
    #[error("dr_level={given:?} is no level of training {training}{elsewhere}; {fix}")]
    Unknown {
        /// The word as given.
        given: String,
        /// The training.
        training: String,
        /// That another training has such a level.
        elsewhere: String,
        /// The nearest name, or all of them.
        fix: String,
    },
    /// None was given, and the recipe names no default.
    #[error("training {training} needs a dr_level and has no default_level; known: {known}")]
    NotGiven {
        /// The training.
        training: String,
        /// Its levels.
        known: String,
    },
    /// The training has no levels, and one was asked for.
    #[error(
        "training {training} has no levels; leave dr_level out, or give \"none\", not {given:?}"
    )]
    HasNone {
        /// The training.
        training: String,
        /// The word as given.
        given: String,
    },
}

/// The level that `given` means, by name or alias, letters as good as capitals; the default one when
/// nothing is given. `None` for a training that has no levels. `all` are the trainings of the config,
/// to say whose level it is instead.
///
/// # Errors
/// [`LevelError`] with the nearest name.
pub fn level<'a>(
    recipe: &'a Recipe,
    given: Option<&str>,
    all: &[Recipe],
) -> Result<Option<&'a Level>, LevelError> {
    let training = recipe.name.clone();
    if recipe.levels.is_empty() {
        return match given {
            None => Ok(None),
            Some(word) if word.eq_ignore_ascii_case("none") => Ok(None),
            Some(word) => Err(LevelError::HasNone { training, given: cut(word) }),
        };
    }
    let names = || recipe.levels.iter().map(|level| level.name.as_str());
    let Some(word) = given.or(recipe.default_level.as_deref()) else {
        let known = names().collect::<Vec<_>>().join(", ");
        return Err(LevelError::NotGiven { training, known });
    };
    if let Some(level) = recipe.levels.iter().find(|level| level.is_called(word)) {
        return Ok(Some(level));
    }
    let has = |other: &&Recipe| other.levels.iter().any(|level| level.is_called(word));
    let owners: Vec<&str> = all.iter().filter(has).map(|other| other.name.as_str()).collect();
    let elsewhere = match owners[..] {
        [] => String::new(),
        _ => format!(" (it is one of {})", owners.join(", ")),
    };
    let aliases = recipe.levels.iter().flat_map(|level| &level.aliases).map(String::as_str);
    // An alias of one letter is near to everything, and every alias of every level is no help.
    let near = nearest(word, names().chain(aliases.filter(|alias| alias.len() > 2)));
    let fix = if near.starts_with("did") {
        near
    } else {
        format!("known here: {}", names().collect::<Vec<_>>().join(", "))
    };
    Err(LevelError::Unknown { given: cut(word), training, elsewhere, fix })
}

fn cut(word: &str) -> String {
    word.chars().take(80).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::training::sample;

    #[test]
    fn names_and_aliases_mean_a_level_however_they_are_written() {
        let all = [sample::curee(), sample::bluerov2()];
        let of = |given: &str| {
            level(&all[0], Some(given), &all).map(|level| level.unwrap().name.clone())
        };
        for (words, name) in [
            (&["none", "NO_DR", "0", "dr_0", "DR_0"][..], "DR_0"),
            (&["small", "Small", "1", "DR_1"], "DR_1"),
            (&["large", "shipped", "SHIPPED", "2", "dr_2"], "DR_2"),
            (&["3", "dr_3"], "DR_3"),
            (&["4", "DR_4"], "DR_4"),
        ] {
            for word in words {
                assert_eq!(of(word).as_deref(), Ok(name), "{word}");
            }
        }
        assert_eq!(level(&all[0], None, &all).unwrap().unwrap().name, "DR_2");
    }

    /// Bad input: an unknown level or alias, and a level of the other vehicle.
    #[test]
    fn a_word_that_means_no_level_is_refused_with_the_nearest_or_with_whose_it_is() {
        let all = [sample::curee(), sample::bluerov2()];
        for (recipe, given, says) in [
            (&all[0], "smal", "did you mean small?"),
            (&all[0], "DR_7", "did you mean DR_0?"),
            (&all[0], "", "known here: DR_0, DR_1, DR_2, DR_3, DR_4"),
            (&all[0], "medium", "known here: DR_0, DR_1, DR_2, DR_3, DR_4"),
            (
                &all[1],
                "DR_3",
                "is no level of training bluerov2 (it is one of curee); did you mean",
            ),
            (&all[1], "4", "(it is one of curee); known here: DR_0, DR_1, DR_2"),
        ] {
            let error = level(recipe, Some(given), &all).unwrap_err().to_string();
            assert!(error.contains(says), "{given}: {error}");
        }
        let plain = Recipe { levels: Vec::new(), default_level: None, ..sample::curee() };
        assert_eq!(level(&plain, Some("none"), &all), Ok(None));
        assert!(level(&plain, Some("1"), &all).is_err());
        let no_default = Recipe { default_level: None, ..sample::curee() };
        assert!(level(&no_default, None, &all).unwrap_err().to_string().contains("DR_4"));
    }
}
