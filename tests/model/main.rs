//! The three machines, explored: every order of events within the bounds that docs/machines.md tells, by
//! the model checker `stateright`, over the very functions that run. A harness of its own, so that a
//! plain `cargo test` shows what was explored; it knows `--list`, a filter, `--exact` and `--skip`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::exit,
    clippy::disallowed_methods,
    missing_docs,
    reason = "tests"
)]

mod asking;
mod explore;
mod mutants;
mod run;
mod watch;
mod world;

use explore::Explored;
use run::{Machines, Run};
use stateright::Expectation;
use std::process::ExitCode;
use watch::Watch;
use world::Bad;

/// What is explored, or caught, and then what must be said against it.
type Check = (String, Option<&'static str>, Box<dyn Fn() -> Explored>);

const ALONE: Run = Run {
    machines: Machines::REAL,
    supervise: true,
    fuse: false,
    no_stop: false,
    bad: 3,
    lies: 1,
    goes_wrong: &[
        Bad::PodIsStopped,
        Bad::PodIsStartedAgain,
        Bad::PodIsDeleted,
        Bad::PodIsRenamed,
        Bad::AnotherPodOfTheName,
        Bad::KeyIsRevoked,
        Bad::LaptopSleeps,
        Bad::ClockIsSetBack,
    ],
};

const TOGETHER: &[Bad] = &[
    Bad::PodIsStopped,
    Bad::PodIsStartedAgain,
    Bad::PodIsDeleted,
    Bad::PodIsRenamed,
    Bad::AnotherPodOfTheName,
    Bad::KeyIsRevoked,
    Bad::LaptopSleeps,
    Bad::ClockIsSetBack,
    Bad::SuperviseIsKilled,
    Bad::LaptopDies,
    Bad::AnotherSessionBegins,
];

fn checks() -> Vec<Check> {
    let of = |name: &str, model: Run| -> Check {
        (name.to_owned(), None, Box::new(move || explore::explore(model)))
    };
    let mut checks = vec![
        of("supervise", ALONE),
        of("supervise_that_leaves_the_pod_running", Run { no_stop: true, ..ALONE }),
        of("deadman", Run { supervise: false, fuse: true, ..ALONE }),
        of(
            "supervise_and_deadman",
            Run { fuse: true, bad: 2, lies: 0, goes_wrong: TOGETHER, ..ALONE },
        ),
        of(
            "supervise_and_deadman_and_a_provider_that_lies",
            Run { fuse: true, bad: 1, lies: 1, goes_wrong: TOGETHER, ..ALONE },
        ),
        of(
            "supervise_that_leaves_the_pod_running_and_deadman",
            Run { fuse: true, no_stop: true, bad: 1, lies: 0, goes_wrong: TOGETHER, ..ALONE },
        ),
        (
            "watch".to_owned(),
            None,
            Box::new(|| explore::explore(Watch { next: podtether::watch::state::next })),
        ),
    ];
    for (name, against, model) in mutants::of_runs() {
        checks.push((mutant(name), Some(against), Box::new(move || explore::explore(model))));
    }
    for (name, against, model) in mutants::of_watches() {
        checks.push((mutant(name), Some(against), Box::new(move || explore::explore(model))));
    }
    checks
}

fn mutant(name: &str) -> String {
    format!("caught_{}", name.replace([' ', '-'], "_"))
}

fn tell(name: &str, explored: &Explored) {
    let Explored { states, unique, depth, took, properties } = explored;
    println!(
        "  {name}: {states} states, {unique} of them different, longest path {depth}, {:.1} s",
        took.as_secs_f64()
    );
    for (property, (kind, path)) in properties {
        let word = match (kind, path) {
            (Expectation::Sometimes, Some(_)) => "happens",
            (Expectation::Sometimes, None) => "NEVER HAPPENS",
            (_, None) => "holds",
            (_, Some(_)) => "BROKEN",
        };
        println!("    {word}: {property}");
    }
}

fn tell_path(property: &str, path: &[String]) {
    println!("    against: {property}");
    for (at, step) in path.iter().enumerate() {
        println!("      {:2} {step}", at + 1);
    }
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let mut filters = Vec::new();
    let mut skips = Vec::new();
    let mut words = args.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--skip" => skips.extend(words.next().cloned()),
            "--test-threads" | "--format" | "--color" | "-Z" | "--logfile" => {
                words.next();
            }
            word if word.starts_with('-') => {}
            word => filters.push(word.to_owned()),
        }
    }
    let is_exact = args.iter().any(|word| word == "--exact");
    let fits = |name: &str, words: &[String]| {
        words.iter().any(|word| if is_exact { name == word } else { name.contains(word.as_str()) })
    };
    let mut checks = checks();
    checks.retain(|(name, ..)| (filters.is_empty() || fits(name, &filters)) && !fits(name, &skips));
    if args.iter().any(|word| word == "--ignored") {
        checks.clear();
    }
    if args.iter().any(|word| word == "--list") {
        checks.iter().for_each(|(name, ..)| println!("{name}: test"));
        return ExitCode::SUCCESS;
    }
    println!("\nrunning {} tests", checks.len());
    let mut failed = 0;
    for (name, against, check) in &checks {
        let explored = check();
        let is_fine = match against {
            None => explored.broken().is_empty(),
            Some(against) => explored.is_against(against),
        };
        println!("test {name} ... {}", if is_fine { "ok" } else { "FAILED" });
        if against.is_none() {
            tell(name, &explored);
        }
        for (property, path) in explored.broken() {
            if !is_fine || filters.iter().any(|filter| name.contains(filter.as_str())) {
                tell_path(property, &path);
            }
        }
        match against {
            Some(against) if is_fine => println!("    as it must: {against}"),
            Some(against) => println!("    NOT CAUGHT: {against}"),
            None => {}
        }
        failed += usize::from(!is_fine);
    }
    let word = if failed == 0 { "ok" } else { "FAILED" };
    println!("\ntest result: {word}. {} passed; {failed} failed", checks.len() - failed);
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
