//! Seeds. torch takes 64 bits (`torch.manual_seed`), but trainers seed numpy with the same number, and
//! numpy takes 0 to 2^32 - 1 and raises on anything else (`numpy.random.seed`), so that is the range;
//! -1, which Isaac Lab takes for "any", would make a run that nobody can repeat.

/// A text that is no seed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "seed={given} is not a whole number from 0 to {max}, which is what numpy and torch both take; the nearest is {nearest}"
)]
pub struct SeedError {
    /// As given.
    pub given: String,
    /// The highest that the recipe allows.
    pub max: u32,
    /// The nearest seed.
    pub nearest: u32,
}

/// Reads a seed.
///
/// # Errors
/// [`SeedError`] with the nearest one.
pub fn seed(text: &str, max: u32) -> Result<u32, SeedError> {
    let text = text.trim();
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if let Some(seed) = text.parse().ok().filter(|seed| digits && *seed <= max) {
        return Ok(seed);
    }
    let number: Option<f64> = text.parse().ok().filter(|number: &f64| number.is_finite());
    let nearest = match number {
        Some(number) if number <= 0.0 => 0,
        Some(number) if number >= f64::from(max) => max,
        // Between the two, so it fits.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 < x < max")]
        Some(number) => number.round() as u32,
        None => 1.min(max),
    };
    Err(SeedError { given: text.chars().take(40).collect(), max, nearest })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bad input: a seed of -1 or 2^64.
    #[test]
    fn a_seed_is_what_numpy_and_torch_take() {
        for (text, read) in [("0", 0), ("1", 1), (" 7 ", 7), ("4294967295", u32::MAX)] {
            assert_eq!(seed(text, u32::MAX), Ok(read));
        }
        for (text, nearest) in [
            ("-1", 0),
            ("4294967296", u32::MAX),
            ("18446744073709551616", u32::MAX),
            ("1.8446744073709552e19", u32::MAX),
            ("1.5", 2),
            ("+1", 1),
            ("0x10", 1),
            ("", 1),
            ("any", 1),
            ("NaN", 1),
            ("-inf", 1),
        ] {
            let error = seed(text, u32::MAX).unwrap_err();
            assert_eq!(error.nearest, nearest, "{text}: {error}");
        }
        assert_eq!(seed("11", 10).unwrap_err().nearest, 10);
    }
}
