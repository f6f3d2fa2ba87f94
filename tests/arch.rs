//! The rules of the house, checked: which room may look into which, and what stays pure.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs, reason = "tests")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Every room, and the rooms whose words it may use. A room that is not listed does not exist.
const ROOMS: &[(&str, &[&str])] = &[
    ("digest", &[]),
    ("domain", &[]),
    ("plan", &["digest", "domain"]),
    ("guard", &["domain", "plan"]),
    ("clock", &[]),
    ("held", &[]),
    ("secret", &[]),
    ("whole_file", &[]),
    ("plot", &[]),
    ("watch", &["domain"]),
    ("training", &["clock", "digest", "domain", "watch"]),
    ("config", &["digest", "domain", "secret"]),
    ("key_source", &["clock", "config", "secret"]),
    ("notify", &["config", "domain", "key_source", "secret"]),
    ("cloud", &["clock", "digest", "domain", "guard", "held", "plan", "secret"]),
    ("pod", &["clock", "digest", "domain", "held", "plan", "secret"]),
    ("ledger", &["clock", "digest", "domain", "held"]),
    ("runs", &["domain", "ledger"]),
    ("apply", &["clock", "cloud", "domain", "guard", "ledger", "plan", "pod"]),
    ("error", &["cloud", "guard", "pod"]),
    (
        "deadman",
        &["apply", "clock", "cloud", "digest", "domain", "guard", "held", "plan", "secret"],
    ),
    (
        "ops",
        &[
            "apply",
            "clock",
            "cloud",
            "config",
            "deadman",
            "digest",
            "domain",
            "error",
            "guard",
            "held",
            "key_source",
            "ledger",
            "plan",
            "pod",
            "runs",
            "secret",
            "training",
            "watch",
            "whole_file",
        ],
    ),
    (
        "supervise",
        &[
            "apply",
            "domain",
            "error",
            "notify",
            "ops",
            "pod",
            "runs",
            "training",
            "watch",
            "whole_file",
        ],
    ),
    (
        "chain",
        &[
            "clock",
            "config",
            "digest",
            "domain",
            "error",
            "held",
            "notify",
            "ops",
            "pod",
            "supervise",
            "whole_file",
        ],
    ),
    ("drill", &["deadman", "domain", "error", "notify", "ops", "pod", "supervise"]),
    (
        "demo",
        &["clock", "cloud", "config", "domain", "error", "notify", "ops", "plot", "supervise"],
    ),
    ("mcp", &["error", "ops", "secret"]),
    (
        "cli",
        &[
            "apply",
            "chain",
            "clock",
            "cloud",
            "config",
            "deadman",
            "demo",
            "domain",
            "drill",
            "error",
            "mcp",
            "notify",
            "ops",
            "pod",
            "runs",
            "supervise",
            "training",
            "watch",
        ],
    ),
];

/// What a pure room never says: no async, no I/O, no clock, no environment, no randomness, no log.
const IMPURE: &[&str] = &[
    "async ",
    ".await",
    "tokio",
    "reqwest",
    "russh",
    "axum",
    "std::fs",
    "std::io",
    "std::net",
    "std::process",
    "std::env",
    "std::thread",
    "SystemTime",
    "Instant",
    "Utc::now",
    "Local::now",
    "rand::",
    "tracing",
    "println!",
    "eprintln!",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

fn rust_files(at: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(at).unwrap_or_else(|error| panic!("{}: {error}", at.display())) {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// A file's code, without its comments and without its unit tests.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    let before_tests = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap();
    let is_comment = |line: &&str| line.trim_start().starts_with("//");
    before_tests.lines().filter(|line| !is_comment(line)).collect::<Vec<_>>().join("\n")
}

fn is_test_file(path: &Path) -> bool {
    let is_of_tests =
        |folder: &Path| folder.ends_with("tests") && folder.with_extension("rs").is_file();
    path.file_name().is_some_and(|name| name == "tests.rs" || name == "sample.rs")
        || path.parent().is_some_and(is_of_tests)
}

fn room_of(path: &Path) -> String {
    let inside = path.strip_prefix(root().join("src")).unwrap();
    let first = inside.components().next().unwrap().as_os_str().to_str().unwrap();
    first.trim_end_matches(".rs").to_owned()
}

fn source_files() -> Vec<PathBuf> {
    let files = rust_files(&root().join("src"));
    files.into_iter().filter(|path| !is_test_file(path)).collect()
}

/// Every `crate::room` that a text names, also inside `use crate::{a, b::c}`.
fn rooms_named(text: &str) -> BTreeSet<String> {
    let mut named = BTreeSet::new();
    for part in text.split("crate::").skip(1) {
        if let Some(group) = part.strip_prefix('{') {
            let mut depth = 1;
            let mut word = String::new();
            let mut is_first = true;
            for c in group.chars() {
                match c {
                    '{' => depth += 1,
                    '}' => depth -= 1,
                    ',' if depth == 1 => {
                        named.insert(std::mem::take(&mut word));
                        is_first = true;
                        continue;
                    }
                    ':' => is_first = false,
                    _ if depth == 1 && is_first && (c.is_alphanumeric() || c == '_') => {
                        word.push(c)
                    }
                    _ => {}
                }
                if depth == 0 {
                    named.insert(std::mem::take(&mut word));
                    break;
                }
            }
        } else {
            named.insert(part.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect());
        }
    }
    named.retain(|name| !name.is_empty());
    named
}

#[test]
fn every_room_looks_only_into_the_rooms_below_it() {
    let allowed: BTreeMap<&str, &[&str]> = ROOMS.iter().copied().collect();
    let mut wrong = Vec::new();
    for path in source_files() {
        let room = room_of(&path);
        if room == "lib" || room == "main" {
            continue;
        }
        let Some(below) = allowed.get(room.as_str()) else {
            wrong.push(format!("{} is in no room of tests/arch.rs", path.display()));
            continue;
        };
        for named in rooms_named(&code(&path)) {
            let is_room = allowed.contains_key(named.as_str());
            if is_room && named != room && !below.contains(&named.as_str()) {
                wrong.push(format!("{}: {room} may not look into {named}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_rooms_have_no_circle() {
    let mut built: BTreeSet<&str> = BTreeSet::new();
    for (room, below) in ROOMS {
        for name in *below {
            assert!(
                built.contains(name),
                "{room} stands before {name}, which it uses: a circle or a wrong order"
            );
        }
        built.insert(room);
    }
}

#[test]
fn the_pure_rooms_are_there_and_pure() {
    let mut pure: Vec<PathBuf> = Vec::new();
    for room in ["domain", "guard", "plan", "runs"] {
        let files = rust_files(&root().join("src").join(room));
        assert!(files.len() > 2, "src/{room} is empty");
        pure.extend(files);
    }
    // Recipes are data; only the demo's own training runs.
    let recipes = rust_files(&root().join("src/training"));
    pure.extend(recipes.into_iter().filter(|path| !path.to_string_lossy().contains("/auv/")));
    let machines: Vec<_> = source_files()
        .into_iter()
        .filter(|path| path.ends_with("state.rs"))
        .filter(|path| ["chain", "deadman", "supervise", "watch"].contains(&room_of(path).as_str()))
        .collect();
    assert_eq!(machines.len(), 4, "chain, deadman, supervise or watch has no state.rs");
    pure.extend(machines);
    for path in pure.into_iter().filter(|path| !is_test_file(path)) {
        let code = code(&path);
        for word in IMPURE {
            assert!(!code.contains(word), "{} says {word:?}", path.display());
        }
    }
}

/// One door: `Approved` and `ApprovedChange` are made in guard alone, and change is called in apply alone.
#[test]
fn nothing_changes_at_the_provider_but_through_an_approved_plan() {
    for path in source_files() {
        let (room, code) = (room_of(&path), code(&path));
        if room != "guard" {
            assert!(!code.contains("Approved::new"), "{}", path.display());
            assert!(!code.contains("ApprovedChange {"), "{}", path.display());
        }
        if room != "apply" {
            assert!(
                !code.contains("cloud.change("),
                "{} changes the provider beside apply",
                path.display()
            );
        }
    }
}

/// A22: nothing starts a pod because one stopped. A start is drafted in one place, which is asked only
/// where somebody asked for a pod; what follows, stops or watches never does.
#[test]
fn no_path_leads_from_a_stop_to_a_start() {
    // The drill starts the pod for each fuse that is to stop it: whoever runs it asked for that.
    let may_ask = [
        "ops/ensure.rs",
        "mcp/tools/ensure_pod.rs",
        "demo/mod.rs",
        "demo/scene.rs",
        "drill/step.rs",
    ];
    for path in source_files() {
        let (file, code) = (path.to_string_lossy().into_owned(), code(&path));
        if !may_ask.iter().any(|end| file.ends_with(end)) {
            let asks = code.contains("ensure_pod(") || code.contains("plan::ensure(");
            assert!(!asks, "{file} asks for a pod");
        }
        let is_drafter = file.ends_with("plan/ensure.rs");
        let drafts = code.contains("vec![Step::Cloud(Change::StartPod(");
        assert_eq!(drafts, is_drafter, "{file}: a start is drafted in plan/ensure.rs alone");
    }
    for room in ["chain", "supervise", "apply"] {
        for path in rust_files(&root().join("src").join(room)) {
            assert!(!code(&path).contains("EnsureRequest"), "{}", path.display());
        }
    }
}

/// A dry run is the same object: what plans, approves or carries out does not know the word.
#[test]
fn no_room_below_the_faces_knows_a_dry_run() {
    for path in source_files() {
        if ["domain", "plan", "guard", "apply", "cloud", "pod"].contains(&room_of(&path).as_str()) {
            assert!(!code(&path).contains("dry_run"), "{}", path.display());
        }
    }
}

/// Wire shapes stop at the door.
#[test]
fn wire_types_stay_in_the_client() {
    for path in source_files() {
        if !path.to_string_lossy().contains("/cloud/runpod/") {
            assert!(!code(&path).contains("wire::"), "{}", path.display());
        }
    }
}

#[test]
fn no_file_is_named_after_nothing() {
    for path in rust_files(&root().join("src")) {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        assert!(
            !["utils", "util", "helpers", "helper", "manager", "common", "misc"]
                .contains(&name.as_str()),
            "{name}"
        );
        let text = fs::read_to_string(&path).unwrap();
        let opens = text.starts_with("//!") || is_test_file(&path);
        assert!(opens, "{} does not say what it is for", path.display());
    }
}

/// The soft ceiling of 400 lines before tests; a file that needs more holds a second responsibility.
#[test]
fn no_file_has_more_than_400_lines_before_its_tests() {
    let long: Vec<String> = source_files()
        .into_iter()
        .filter_map(|path| {
            let text = fs::read_to_string(&path).unwrap();
            let lines = text.split("\n#[cfg(test)]\nmod tests").next().unwrap().lines().count();
            (lines > 400).then(|| format!("{} has {lines}", path.display()))
        })
        .collect();
    assert!(long.is_empty(), "{}", long.join("\n"));
}

/// Every script that travels to a pod is a constant, and the job folder's contract names it.
#[test]
fn every_remote_script_is_named_in_the_contract_and_in_the_code() {
    let contract = fs::read_to_string(root().join("remote/README.md")).unwrap();
    let sources: String =
        source_files().iter().map(|path| fs::read_to_string(path).unwrap()).collect();
    let scripts =
        ["remote", "remote/shared"].map(|folder| fs::read_dir(root().join(folder)).unwrap());
    for entry in scripts.into_iter().flatten() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if name.ends_with(".sh") {
            assert!(contract.contains(&name), "remote/README.md does not name {name}");
            assert!(sources.contains(&name), "no code sends {name}");
        }
    }
}

#[test]
fn the_reader_of_imports_reads_groups_and_paths() {
    let text = "use crate::{apply::{self, Ports}, cloud, ops::X};\nlet a = crate::guard::review();";
    let expected: BTreeSet<String> = ["apply", "cloud", "guard", "ops"].map(str::to_owned).into();
    assert_eq!(rooms_named(text), expected);
}
