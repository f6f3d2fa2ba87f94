//! The balance, which comes from an interface that may be gone any day.

use super::server::{Reply, Server};
use super::{AMPLE, KEY, ONCE, client};
use podtether::cloud::{Balance, Cloud as _};
use podtether::domain::Usd;

const KNOWN: &str =
    r#"{"data":{"myself":{"clientBalance":12.34,"currentSpendPerHr":0.69,"spendLimit":80}}}"#;

fn known() -> Balance {
    Balance::Known {
        usd: Usd::from_micros(12_340_000),
        per_hour: Some(Usd::from_micros(690_000)),
        limit: Some(Usd::from_micros(80_000_000)),
    }
}

#[tokio::test]
async fn the_balance_is_asked_with_the_key_in_the_header_alone() {
    let server = Server::start([Reply::json(200, KNOWN)]).await;
    assert_eq!(client(&server, ONCE).balance().await, known());
    let asked = server.asked();
    let [asked] = &asked[..] else { panic!("{asked:?}") };
    assert_eq!((asked.method.as_str(), asked.target.as_str()), ("POST", "/graphql"));
    assert_eq!(asked.header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    let query = asked.json()["query"].as_str().unwrap().to_owned();
    assert!(query.contains("myself") && !query.contains("mutation"), "{query}");
    assert!(!query.contains(KEY), "{query}");
}

/// A10, and GraphQL's own way to fail with 200: whatever comes, it reads as unknown, and why.
#[tokio::test]
async fn whatever_becomes_of_graphql_reads_as_unknown_and_why() {
    let errors = r#"{"errors":[{"message":"Something went wrong."}],"data":{"myself":null}}"#;
    for (reply, says) in [
        (Reply::json(410, r#"{"error":"retired"}"#), "retired"),
        (Reply::json(404, r#"{"error":"no such thing"}"#), "no such thing"),
        (Reply::json(401, r#"{"error":"who are you"}"#), "who are you"),
        (Reply::plain(403, "error code: 1010"), "1010"),
        (Reply::json(500, "{}"), "500"),
        (Reply::json(200, errors), "Something went wrong."),
        (Reply::json(200, r#"{"data":{"myself":null}}"#), "no readable balance"),
        (Reply::plain(200, ""), "empty"),
        (Reply::plain(200, "<html>moved</html>"), "moved"),
        (Reply::Drop, "connection"),
        (Reply::CutOff { status: 200, body: KNOWN.into() }, "connection"),
    ] {
        let told = format!("{reply:?}");
        let server = Server::start([reply]).await;
        match client(&server, ONCE).balance().await {
            Balance::Unknown(why) => assert!(why.contains(says), "{told}: {why}"),
            known @ Balance::Known { .. } => panic!("{told}: {known:?}"),
        }
        assert_eq!(server.asked().len(), 1, "{told}");
    }
}

#[tokio::test]
async fn a_balance_that_stumbles_once_is_asked_again() {
    let server = Server::start([Reply::json(502, "{}"), Reply::json(200, KNOWN)]).await;
    assert_eq!(client(&server, AMPLE).balance().await, known());
}
