//! Which run somebody means by a part of its id.

/// A text that means no run, or several.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PickError {
    /// Several begin so.
    #[error("{given:?} begins the ids of {count} runs: {}{}", shown.join(", "), if *count > shown.len() { ", …" } else { "" })]
    Several {
        /// As given.
        given: String,
        /// How many.
        count: usize,
        /// The first of them.
        shown: Vec<String>,
    },
    /// None does.
    #[error("no run's id begins with {given:?}; {}", near_words(near))]
    None {
        /// As given.
        given: String,
        /// The ids that are nearest to it.
        near: Vec<String>,
    },
}

fn near_words(near: &[String]) -> String {
    match near {
        [] => "no run is known here".to_owned(),
        near => format!("did you mean {}?", near.join(" or ")),
    }
}

/// How many ids are shown.
const SHOWN: usize = 5;

/// The one id that begins with a text, or is it.
///
/// # Errors
/// [`PickError`] with what it may have meant.
pub fn pick<'a>(given: &str, ids: impl Iterator<Item = &'a str>) -> Result<&'a str, PickError> {
    let ids: Vec<&str> = ids.collect();
    if let Some(id) = ids.iter().find(|id| **id == given) {
        return Ok(id);
    }
    let shown = || given.chars().take(80).collect::<String>();
    let begin: Vec<&str> =
        ids.iter().copied().filter(|id| !given.is_empty() && id.starts_with(given)).collect();
    match begin[..] {
        [one] => Ok(one),
        [] => {
            let length = given.chars().count();
            // Against as much of an id as was given: what comes behind it is no slip.
            let distance = |id: &str| {
                let begin: String = id.chars().take(length).collect();
                let whole = strsim::damerau_levenshtein(given, id);
                strsim::damerau_levenshtein(given, &begin).min(whole)
            };
            let mut near: Vec<(usize, &str)> = ids.iter().map(|id| (distance(id), *id)).collect();
            near.sort_by_key(|(distance, _)| *distance);
            let near = near.into_iter().take(2).map(|(_, id)| id.to_owned()).collect();
            Err(PickError::None { given: shown(), near })
        }
        _ => Err(PickError::Several {
            given: shown(),
            count: begin.len(),
            shown: begin.into_iter().take(SHOWN).map(str::to_owned).collect(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDS: [&str; 3] =
        ["20260703-132525_a_00ab", "20260703-140000_b_00ac", "20260704-090000_a_00ad"];

    fn of(given: &str) -> Result<&'static str, String> {
        pick(given, IDS.into_iter()).map_err(|error| error.to_string())
    }

    #[test]
    fn an_id_is_known_by_its_beginning_while_that_is_the_only_one() {
        assert_eq!(of("20260704"), Ok(IDS[2]));
        assert_eq!(of(IDS[0]), Ok(IDS[0]));
        let several = of("20260703").unwrap_err();
        assert!(several.contains("2 runs") && several.contains(IDS[1]), "{several}");
        let near = of("20260705-09").unwrap_err();
        assert!(near.contains(&format!("did you mean {}", IDS[2])), "{near}");
        assert!(of("").is_err());
        assert!(pick("x", std::iter::empty()).unwrap_err().to_string().contains("no run is known"));
    }
}
