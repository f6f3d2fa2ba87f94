//! Key sources against fake programs that behave like the real ones on their bad days.

use podtether::config::Environment;
use podtether::key_source::{
    KeyError, KeySource, KeychainSource, SecretServiceSource, Silent, SilentRead, find_in,
};
use podtether::secret::Secret;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Far above what a healthy fake takes, also on a busy machine.
const LONG: Duration = Duration::from_secs(60);

struct Says(Silent);

impl SilentRead for Says {
    fn read(&self, _: &str, _: &str) -> Silent {
        self.0.clone()
    }
}

fn fake(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures/config/keychain").join(name)
}

fn env() -> Environment {
    let path = std::env::var("PATH").unwrap();
    Environment::isolated([("PATH", path.as_str()), ("RUNPOD_API_KEY", "MARKER-key-1")])
}

fn keychain(silent: Silent, account: &str, wait: Duration) -> KeychainSource {
    KeychainSource::with(&env(), Some(account), Box::new(Says(silent)), fake("security"), wait)
}

fn would_ask() -> Silent {
    Silent::Unreadable("interaction not allowed".to_owned())
}

fn revealed(read: &Result<Option<Secret>, KeyError>) -> Option<&str> {
    read.as_ref().unwrap().as_ref().map(Secret::reveal)
}

/// C11: a locked keychain says nothing, or 36, or asks on the screen; absent is not locked.
#[test]
fn every_answer_of_the_keychains_program_has_its_own_meaning() {
    let read = |account: &str| keychain(would_ask(), account, LONG).read();
    assert_eq!(revealed(&read("stored")), Some("rpa_FAKEFAKE0001"));
    assert_eq!(revealed(&read("reads-stdin")), Some("rpa_FAKEFAKE0004"));
    assert_eq!(read("absent"), Ok(None));
    for account in ["empty", "locked", "denied", "cancelled"] {
        let error = read(account).unwrap_err();
        assert!(matches!(error, KeyError::Locked { .. }), "{account}: {error}");
        assert!(error.to_string().contains("security unlock-keychain"), "{error}");
    }
    for account in ["floods", "two-lines"] {
        let error = read(account).unwrap_err();
        assert!(matches!(error, KeyError::Malformed { .. }), "{account}: {error}");
    }
    let odd = read("odd").unwrap_err().to_string();
    assert!(odd.contains("exit code 7") && odd.contains("[secret]"), "{odd}");
    assert!(!odd.contains("FAKEFAKE"), "{odd}");
}

/// C11: a prompt that nobody answers ends within the wait, with everything it started.
#[test]
fn a_keychain_that_waits_for_a_click_is_ended_in_time() {
    for account in ["hangs", "holds"] {
        let start = Instant::now();
        let error = keychain(would_ask(), account, Duration::from_millis(300)).read().unwrap_err();
        assert!(matches!(error, KeyError::TimedOut { .. }), "{account}: {error}");
        assert!(error.to_string().contains("unlock"), "{error}");
        assert!(start.elapsed() < LONG, "{account} held us up for {:?}", start.elapsed());
    }
}

/// H04: the program gets a clean environment, without the key.
#[test]
fn the_program_gets_no_key_and_a_clean_environment() {
    let error = keychain(would_ask(), "tells-env", LONG).read().unwrap_err().to_string();
    let names = error.rsplit(": ").next().unwrap();
    let others: Vec<&str> =
        names.split(' ').filter(|name| !["PATH", "PWD", "SHLVL", "_", ""].contains(name)).collect();
    assert!(names.contains("PATH") && others.is_empty(), "{error}");
}

#[test]
fn a_silent_read_that_succeeds_asks_no_program() {
    let found = keychain(Silent::Found(b"rpa_SILENT01\n".to_vec()), "locked", LONG).read();
    assert_eq!(revealed(&found), Some("rpa_SILENT01"));
    assert_eq!(keychain(Silent::Absent, "stored", LONG).read(), Ok(None));
    let bytes = keychain(Silent::Found(vec![0xff, 0xfe]), "stored", LONG).read();
    assert!(matches!(bytes, Err(KeyError::Malformed { .. })), "{bytes:?}");
}

#[test]
fn the_secret_service_tells_absent_from_unreachable() {
    let source =
        |account| SecretServiceSource::with(&env(), Some(account), fake("secret-tool"), LONG);
    assert_eq!(revealed(&source("stored").read()), Some("rpa_FAKEFAKE0005"));
    assert_eq!(source("absent").read(), Ok(None));
    let error = source("no-bus").read().unwrap_err().to_string();
    assert!(error.contains("D-Bus"), "{error}");
    let wait = Duration::from_millis(300);
    let hangs = SecretServiceSource::with(&env(), Some("hangs"), fake("secret-tool"), wait).read();
    assert!(matches!(hangs, Err(KeyError::TimedOut { .. })), "{hangs:?}");
    let gone = SecretServiceSource::with(&env(), Some("x"), "/nowhere/secret-tool".into(), LONG);
    assert!(matches!(gone.read(), Err(KeyError::NoProgram { .. })));
    let nobody = SecretServiceSource::with(&env(), None, fake("secret-tool"), LONG).read();
    assert_eq!(nobody, Err(KeyError::NoAccount));
}

struct Place(&'static str, Result<Option<Secret>, KeyError>);

impl KeySource for Place {
    fn describe(&self) -> String {
        self.0.to_owned()
    }
    fn read(&self) -> Result<Option<Secret>, KeyError> {
        self.1.clone()
    }
}

fn places(of: Vec<Place>) -> Vec<Box<dyn KeySource>> {
    of.into_iter().map(|place| Box::new(place) as Box<dyn KeySource>).collect()
}

#[test]
fn a_missing_key_is_told_with_every_place_and_the_command_that_stores_it() {
    let error = find_in(&places(vec![
        Place("environment variable RUNPOD_API_KEY", Ok(None)),
        Place("the chain", Err(KeyError::NoAccount)),
    ]))
    .unwrap_err()
    .to_string();
    assert!(error.contains("RUNPOD_API_KEY: no key there"), "{error}");
    assert!(error.contains("the chain: no account"), "{error}");
    // The key must never have to stand on a command line.
    assert!(error.contains("it asks for the key"), "{error}");
}

/// H04: after a rotation no older copy is used.
#[test]
fn the_first_place_that_holds_a_key_wins_and_a_broken_one_ends_the_search() {
    let key = |text| Ok(Secret::new(text));
    let found = find_in(&places(vec![
        Place("a", Ok(None)),
        Place("b", Err(KeyError::NoProgram { program: "x".to_owned() })),
        Place("c", key("new")),
        Place("d", key("old")),
    ]))
    .unwrap();
    assert_eq!((found.key.reveal(), found.place.as_str()), ("new", "c"));
    assert!(!format!("{found:?}").contains("new"));
    let broken = KeyError::Malformed { place: "a".to_owned() };
    let found = find_in(&places(vec![Place("a", Err(broken.clone())), Place("b", key("old"))]));
    assert_eq!(found.unwrap_err(), broken);
}

#[test]
fn the_environments_key_goes_before_the_keychain_and_must_be_one_word() {
    let found = podtether::key_source::find(&env(), None).unwrap();
    assert_eq!(found.reveal(), "MARKER-key-1");
    let spaced = Environment::isolated([("RUNPOD_API_KEY", "MARKER key")]);
    let error = podtether::key_source::find(&spaced, None).unwrap_err().to_string();
    assert!(error.contains("RUNPOD_API_KEY") && !error.contains("MARKER"), "{error}");
}
