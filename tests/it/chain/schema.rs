//! The schemas that editors follow: shipped as files, and what they accept and mark in a campaign.

use crate::swim::of_repository;
use podtether::config;
use serde_json::Value;
use std::fs;

const RENEW: &str = "if meant, PODTETHER_RENEW_FIXTURES=1 cargo test --test it the_shipped_schemas";

/// An editor reads them from the disk, so they are files; they are made from the tables of keys.
#[test]
fn the_shipped_schemas_are_those_that_the_reader_has() {
    for (file, schema) in [
        ("schema/podtether.json", config::schema()),
        ("schema/campaign.json", config::campaign_schema()),
    ] {
        let path = of_repository(file);
        let text = serde_json::to_string_pretty(&schema).unwrap() + "\n";
        if std::env::var_os("PODTETHER_RENEW_FIXTURES").is_some() {
            // A machine that only checks must not be able to agree with itself.
            assert!(std::env::var_os("CI").is_none(), "files are not renewed in CI");
            fs::write(&path, text).unwrap();
            continue;
        }
        let shipped = fs::read_to_string(&path).unwrap_or_default();
        assert!(shipped == text, "{file} is not what is made now; {RENEW}");
    }
    assert!(
        std::env::var_os("PODTETHER_RENEW_FIXTURES").is_none(),
        "renewed: read the diff, then run again without PODTETHER_RENEW_FIXTURES"
    );
}

/// As YAML 1.2 has it, and the editors' language server: `off` is a word.
fn value(text: &str) -> Value {
    let options = serde_saphyr::options! { strict_booleans: true };
    serde_saphyr::from_str_with_options(text, options).unwrap()
}

#[test]
fn the_schema_of_campaigns_accepts_the_examples_and_refuses_slips() {
    let schema = config::campaign_schema();
    let validator = jsonschema::validator_for(&schema).unwrap();
    for name in ["learning-to-swim", "quickstart"] {
        let path = of_repository("examples").join(name).join("campaign.yaml");
        let example = value(&fs::read_to_string(path).unwrap());
        let errors: Vec<String> = validator.iter_errors(&example).map(|e| e.to_string()).collect();
        assert_eq!(errors, Vec::<String>::new(), "{name}");
    }
    let links = |links: &str| format!("campaign: c\nlinks: [{links}{{name: off, stop: true}}]");
    let link = |more: &str| links(&format!("{{name: one, {more}}}, "));
    let job = |more: &str| link(&format!("command: x, max_usd: 1{more}"));
    let sha = "a".repeat(64);
    for good in [
        links(""),
        job(", workdir: code, pull: out, max_runtime_sec: 60, pause: leave"),
        job(&format!(", pins: [{{here: a, sha256: {sha}}}, {{pod: b, sha256: {sha}}}]")),
        job(", expect: {artifacts: [a], reward_lines: 3, reward: recipe}, needs: [a]"),
        link("training: walk, dr: 1, seed: 2, extra_args: --n 3, max_usd: 1.5"),
        link("sync: out, max_usd: 1"),
        "campaign: c\nlinks: [{name: one, setup: true, max_usd: 1, stop: true}]".to_owned(),
    ] {
        let found = value(&good);
        let errors: Vec<String> = validator.iter_errors(&found).map(|e| e.to_string()).collect();
        assert_eq!(errors, Vec::<String>::new(), "{good}");
    }
    for slip in [
        "campaign: c".to_owned(),
        "links: [{name: off, stop: true}]".to_owned(),
        "campaign: a b\nlinks: [{name: off, stop: true}]".to_owned(),
        "campaign: c\nlinks: []".to_owned(),
        "campaign: c\nlinks: [{name: a, command: x, max_usd: 1}]".to_owned(),
        "campaign: c\nlinks: [{name: a, stop: true}, {name: b, stop: true}]".to_owned(),
        "campaign: c\nvehicels: x\nlinks: [{name: off, stop: true}]".to_owned(),
        link("max_usd: 1"),
        link("command: x"),
        link("command: x, sync: y, max_usd: 1"),
        link("setup: false, max_usd: 1"),
        link("setup: true, max_usd: 0"),
        link("sync: out, max_usd: 1, pull: x"),
        link("patches: true, max_usd: 1, max_runtime_sec: 60"),
        links("{command: x, max_usd: 1}, "),
        job(", seed: 1"),
        job(", dr: small"),
        job(", max_runtime_sex: 9"),
        job(", max_runtime_sec: 10m"),
        job(", pause: sleep"),
        job(", gates: {require: [a]}"),
        job(", gates: {before: {requires: [a]}}"),
        job(", pins: [{pod: a, sha256: abc}]"),
        job(", pins: [{pod: a}]"),
        job(&format!(", pins: [{{pod: a, here: b, sha256: {sha}}}]")),
        job(", expect: {reward_lines: 0}"),
        job(", expect: {reward: [1]}"),
        "campaign: c\nlinks: [{name: off, stop: true, pause: stop}]".to_owned(),
    ] {
        assert!(!validator.is_valid(&value(&slip)), "{slip}");
    }
    // An editor shows what a key means, and completes the nested ones.
    let gates = &schema["properties"]["links"]["items"]["properties"]["gates"]["properties"];
    let told = gates["after"]["properties"]["require"]["description"].as_str().unwrap();
    assert!(told.contains("must be there after it"), "{told}");
}
