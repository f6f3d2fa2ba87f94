//! Money in integer micro-dollars. A float never holds an amount; a price that is missing or not
//! finite is [`Price::Unknown`], which refuses a spend and never a stop.

use std::fmt;
use std::ops::Add;
use std::time::Duration;

/// An amount of US dollars, in whole micro-dollars (1 USD = 1,000,000).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Usd(i64);

/// Why a text is not an amount of money.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MoneyError {
    /// The text is not a plain decimal number such as `0.69`.
    #[error("{0:?} is not a plain decimal number of dollars such as 0.69")]
    NotADecimal(String),
    /// The amount does not fit, or is far beyond any real price.
    #[error("{0:?} dollars is out of range")]
    OutOfRange(String),
}

const MICROS: i128 = 1_000_000;

impl Usd {
    /// No money.
    pub const ZERO: Self = Self(0);

    /// An amount from whole micro-dollars.
    #[must_use]
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// The amount in whole micro-dollars.
    #[must_use]
    pub const fn micros(self) -> i64 {
        self.0
    }

    /// Reads a decimal number of dollars exactly, with an optional sign and exponent (`0.69`,
    /// `-1`, `7e-2`); digits beyond the micro-dollar round up, away from zero.
    ///
    /// # Errors
    /// [`MoneyError`] for anything else, `nan`, `inf` and `$5` among it.
    pub fn from_decimal(text: &str) -> Result<Self, MoneyError> {
        let bad = || MoneyError::NotADecimal(text.to_owned());
        let range = || MoneyError::OutOfRange(text.to_owned());
        let (negative, unsigned) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().map_err(|_| bad())?),
            None => (unsigned, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits_only = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || !digits_only(whole) || !digits_only(fraction) {
            return Err(bad());
        }
        if whole.len() + fraction.len() > 30 {
            return Err(range());
        }
        let digits: i128 = format!("{whole}{fraction}").parse().map_err(|_| bad())?;
        let places = i32::try_from(fraction.len()).map_err(|_| range())?;
        // value = digits * 10^(exponent - places); in micro-dollars six places more.
        let shift =
            exponent.checked_sub(places).and_then(|s| s.checked_add(6)).ok_or_else(range)?;
        let micros = if shift >= 0 {
            let shift = u32::try_from(shift).map_err(|_| range())?;
            10_i128
                .checked_pow(shift)
                .and_then(|scale| digits.checked_mul(scale))
                .ok_or_else(range)?
        } else {
            match 10_i128.checked_pow(shift.unsigned_abs()) {
                Some(scale) => digits / scale + i128::from(digits % scale != 0),
                None => i128::from(digits != 0),
            }
        };
        let micros = i64::try_from(if negative { -micros } else { micros }).map_err(|_| range())?;
        Ok(Self(micros))
    }

    /// The sum, held at the largest amount when it would overflow: a bill never wraps to small.
    #[must_use]
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// The difference, held at the ends of the range.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// The product, held at the ends of the range.
    #[must_use]
    pub const fn saturating_mul(self, times: i64) -> Self {
        Self(self.0.saturating_mul(times))
    }

    /// The exact decimal text, for JSON and logs: `1.25`, `0.000001`.
    #[must_use]
    pub fn to_decimal(self) -> String {
        let sign = if self.0 < 0 { "-" } else { "" };
        let micros = i128::from(self.0).abs();
        let (whole, rest) = (micros / MICROS, micros % MICROS);
        let fraction = format!("{rest:06}");
        let trimmed = fraction.trim_end_matches('0');
        let shown = if trimmed.len() < 2 { &fraction[..2] } else { trimmed };
        format!("{sign}{whole}.{shown}")
    }
}

impl fmt::Display for Usd {
    /// Dollars for people: cents, or as many places as a small amount needs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let micros = i128::from(self.0).abs();
        if micros >= 10_000 || micros == 0 {
            let cents = (micros + 5_000) / 10_000;
            write!(f, "{sign}${}.{:02}", cents / 100, cents % 100)
        } else {
            write!(f, "{sign}${}.{:06}", micros / MICROS, micros % MICROS)
        }
    }
}

impl Add for Usd {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        self.saturating_add(other)
    }
}

impl std::iter::Sum for Usd {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::ZERO, Self::saturating_add)
    }
}

impl serde::Serialize for Usd {
    /// As a JSON number with at most six decimal places.
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[expect(
            clippy::cast_precision_loss,
            reason = "rendering only; f64 holds any real bill to the micro-dollar"
        )]
        serializer.serialize_f64(self.0 as f64 / 1e6)
    }
}

impl schemars::JsonSchema for Usd {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Usd".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "number", "description": "US dollars, exact to the micro-dollar"})
    }
}

/// A rate in micro-dollars for one hour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UsdPerHour(Usd);

impl UsdPerHour {
    /// The rate that costs `usd` in one hour.
    #[must_use]
    pub const fn new(usd: Usd) -> Self {
        Self(usd)
    }

    /// What one hour costs.
    #[must_use]
    pub const fn per_hour(self) -> Usd {
        self.0
    }

    /// What `time` costs, rounded up to the micro-dollar.
    #[must_use]
    pub fn cost_of(self, time: Duration) -> Usd {
        const MILLIS_PER_HOUR: i128 = 3_600_000;
        let millis = i128::try_from(time.as_millis()).unwrap_or(i128::MAX);
        let product = i128::from(self.0.0).saturating_mul(millis);
        let micros = product / MILLIS_PER_HOUR + i128::from(product % MILLIS_PER_HOUR > 0);
        Usd(i64::try_from(micros).unwrap_or(i64::MAX))
    }
}

impl fmt::Display for UsdPerHour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/h", self.0)
    }
}

/// A price as the provider told it, or the fact that it did not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Price {
    /// A finite, non-negative rate.
    Known(UsdPerHour),
    /// Missing, not a number, negative or out of range.
    Unknown,
}

impl Price {
    /// The price in a decimal text; what is not a finite, non-negative amount is unknown.
    #[must_use]
    pub fn from_decimal(text: &str) -> Self {
        match Usd::from_decimal(text) {
            Ok(usd) if usd >= Usd::ZERO => Self::Known(UsdPerHour(usd)),
            _ => Self::Unknown,
        }
    }

    /// The rate, when known.
    #[must_use]
    pub const fn known(self) -> Option<UsdPerHour> {
        match self {
            Self::Known(rate) => Some(rate),
            Self::Unknown => None,
        }
    }
}

impl fmt::Display for Price {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(rate) => rate.fmt(f),
            Self::Unknown => f.write_str("unknown price"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_read_exactly() {
        for (text, micros) in [
            ("0", 0),
            ("0.69", 690_000),
            ("174", 174_000_000),
            ("0.1", 100_000),
            ("-1", -1_000_000),
            ("7e-2", 70_000),
            ("1.5e1", 15_000_000),
            ("0.0000001", 1),
            ("0.6900000000000001", 690_001),
            ("1e-40", 1),
        ] {
            assert_eq!(Usd::from_decimal(text), Ok(Usd(micros)), "{text}");
        }
    }

    /// The kind of fault: NaN passes every `<` check, so it must never become an amount.
    #[test]
    fn what_is_not_a_finite_decimal_is_never_an_amount() {
        for text in
            ["", "nan", "NaN", "inf", "-inf", "$5", "1,5", ".5", "0x10", "1e", "--1", "1 ", "1e999"]
        {
            assert!(Usd::from_decimal(text).is_err(), "{text:?}");
            assert_eq!(Price::from_decimal(text), Price::Unknown, "{text:?}");
        }
        assert_eq!(Price::from_decimal("-0.1"), Price::Unknown);
    }

    #[test]
    fn a_cost_is_rounded_up_and_never_wraps() {
        let rate = UsdPerHour(Usd(690_000));
        assert_eq!(rate.cost_of(Duration::from_secs(3600)), Usd(690_000));
        assert_eq!(rate.cost_of(Duration::from_secs(1)), Usd(192));
        assert_eq!(rate.cost_of(Duration::ZERO), Usd::ZERO);
        assert_eq!(UsdPerHour(Usd(i64::MAX)).cost_of(Duration::MAX), Usd(i64::MAX));
        assert_eq!(Usd(i64::MAX) + Usd(1), Usd(i64::MAX));
    }

    #[test]
    fn amounts_are_shown_in_cents_unless_that_would_hide_them() {
        for (micros, shown) in [
            (0, "$0.00"),
            (690_000, "$0.69"),
            (1_234_567, "$1.23"),
            (123, "$0.000123"),
            (-2_500_000, "-$2.50"),
        ] {
            assert_eq!(Usd(micros).to_string(), shown);
        }
        assert_eq!(Usd(1_250_000).to_decimal(), "1.25");
        assert_eq!(Usd(1).to_decimal(), "0.000001");
        assert_eq!(serde_json::to_string(&Usd(690_000)).unwrap(), "0.69");
    }
}
