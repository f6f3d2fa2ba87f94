//! The balance, which REST v2 does not tell: GraphQL's `myself`. RunPod calls GraphQL deprecated, so
//! everything about it is lenient, it is asked within a short time, and whatever goes wrong reads as
//! unknown with its reason. No other part of podtether depends on it.

use super::rest::Rest;
use super::wire::Scalar;
use crate::cloud::{Balance, CloudError, RequestView};
use crate::domain::Usd;
use serde_json::{Value, json};
use std::time::Duration;

/// The path below the API's base URL.
const PATH: &str = "/graphql";
/// The fields as the official command line asks for them (`runpodctl`, internal/api/gpu.go).
const QUERY: &str = "query { myself { clientBalance currentSpendPerHr spendLimit } }";
/// How long the answer is waited for, retries among it: a report does not wait for a side figure.
const PATIENCE: Duration = Duration::from_secs(6);

/// Asks for the balance.
pub async fn balance(rest: &Rest) -> Balance {
    let view = RequestView {
        method: "POST".to_owned(),
        path: PATH.to_owned(),
        body: Some(json!({ "query": QUERY })),
    };
    match tokio::time::timeout(PATIENCE, rest.query(&view, PATIENCE)).await {
        Ok(Ok(body)) => from_answer(&body),
        Ok(Err(error)) => unknown(&error),
        Err(_) => Balance::Unknown(format!("no answer within {} s", PATIENCE.as_secs())),
    }
}

fn unknown(error: &CloudError) -> Balance {
    Balance::Unknown(error.to_string())
}

/// A body of 200 may still be a failure: errors stand beside or instead of the data, and `myself` is
/// null for a caller who is not known.
fn from_answer(body: &Value) -> Balance {
    let money = |name: &str| {
        let value = body.get("data")?.get("myself")?.get(name)?.clone();
        let text = serde_json::from_value::<Scalar>(value).ok()?.0;
        Usd::from_decimal(&text).ok()
    };
    if let Some(usd) = money("clientBalance") {
        let positive = |usd: &Usd| *usd >= Usd::ZERO;
        return Balance::Known {
            usd,
            per_hour: money("currentSpendPerHr").filter(positive),
            limit: money("spendLimit").filter(positive),
        };
    }
    let said = body.get("errors").and_then(|errors| errors.get(0)?.get("message")?.as_str());
    Balance::Unknown(match said {
        Some(said) => {
            let said: String = said.chars().filter(|c| !c.is_control()).take(200).collect();
            format!("POST {PATH} answered: {}", crate::secret::scrub(&said, &[]))
        }
        None => format!("the answer of POST {PATH} has no readable balance"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Balance {
        from_answer(&serde_json::from_str(text).unwrap())
    }

    /// The kind of fault: a balance that went through a float is not the balance.
    #[test]
    fn a_balance_is_read_exactly_and_its_neighbours_may_be_missing() {
        let known = |usd, per_hour, limit| Balance::Known {
            usd: Usd::from_micros(usd),
            per_hour: Option::map(per_hour, Usd::from_micros),
            limit: Option::map(limit, Usd::from_micros),
        };
        for (fields, balance) in [
            (
                r#""clientBalance":12.34,"currentSpendPerHr":0.69,"spendLimit":80"#,
                known(12_340_000, Some(690_000), Some(80_000_000)),
            ),
            (r#""clientBalance":-0.5,"currentSpendPerHr":0"#, known(-500_000, Some(0), None)),
            (r#""clientBalance":"3","currentSpendPerHr":"NaN""#, known(3_000_000, None, None)),
            (r#""clientBalance":1e1,"currentSpendPerHr":-1"#, known(10_000_000, None, None)),
        ] {
            let text = format!(r#"{{"data":{{"myself":{{{fields}}}}}}}"#);
            assert_eq!(read(&text), balance, "{fields}");
        }
    }

    /// Errors beside null data, an anonymous caller, another shape: all of them come with 200.
    #[test]
    fn whatever_is_no_balance_is_unknown_with_its_reason() {
        for (text, says) in [
            (r#"{"data":{"myself":null}}"#, "no readable balance"),
            (r#"{"data":{"myself":{"clientBalance":null}}}"#, "no readable balance"),
            (r#"{"data":{"myself":{"clientBalance":"lots"}}}"#, "no readable balance"),
            (
                r#"{"errors":[{"message":"Something\nwent wrong rpa_ABCDEFGH1234"}],"data":null}"#,
                "Somethingwent wrong [secret]",
            ),
            (r#"{"errors":"no"}"#, "no readable balance"),
            ("[]", "no readable balance"),
            ("null", "no readable balance"),
        ] {
            let Balance::Unknown(why) = read(text) else { panic!("{text}") };
            assert!(why.contains(says), "{text}: {why}");
        }
    }
}
