//! What somebody meant by a name that is not known.

/// "did you mean X?", or every name when none is near.
#[must_use]
pub fn nearest<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    let folded = given.to_lowercase();
    let near = known
        .iter()
        .map(|name| (strsim::damerau_levenshtein(&folded, &name.to_lowercase()), *name))
        .min_by_key(|(distance, _)| *distance)
        // Two slips, or three in a long name; beyond that the guess is noise.
        .filter(|(distance, name)| *distance <= (name.len() / 4).clamp(1, 3));
    match near {
        Some((_, name)) => format!("did you mean {name}?"),
        None if known.is_empty() => "none is declared".to_owned(),
        None => format!("known here: {}", known.join(", ")),
    }
}
