//! The readers of `watch` against real logs. They are no part of the project (some carry no licence) and lie
//! beside it where they are present at all; everything else about the readers is tested beside them.

use podtether::watch::metrics::{Block, FamilyName, MetricsParser, Pattern};
use podtether::watch::replay::{Replay, ReplayOptions, Replaying};
use podtether::watch::{FailureCause as Cause, LogReading, PlateauRule};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// How one log is to be read: every column of its row in the index, as far as a program can be held to
/// it. What the index says in prose stands here as numbers.
struct Expected {
    id: &'static str,
    family: Option<FamilyName>,
    /// For logs of a form of their own.
    pattern: Option<&'static str>,
    blocks: usize,
    at: Option<(u64, Option<u64>)>,
    value: Value,
    cause: Option<Cause>,
    /// Words that the evidence must have.
    says: &'static str,
    finished: bool,
}

/// Where a row's last value is.
enum Value {
    None,
    Reward(f64),
    /// The last number of this label among losses and other numbers.
    Labelled(&'static str, f64),
}

use Value::{Labelled, Reward};

/// Own loops of one author: `[12,  400/ 2562] - train_losses - Parent Class: 5.7285 …`.
const LOSSES: &str = r"\[\d+,\s*(?P<iteration>\d+)/\s*(?P<total>\d+)\] - train_losses - Parent Class: (?P<value>\S+)";

#[rustfmt::skip]
fn expected() -> Vec<Expected> {
    use FamilyName as F;
    let row = |id, family: Option<F>, blocks, at, value, cause: Option<(Cause, &'static str)>, finished| Expected {
        id, family, pattern: None, blocks, at, value,
        cause: cause.map(|(cause, _)| cause),
        says: cause.map_or("", |(_, says)| says),
        finished,
    };
    let own = |pattern, row: Expected| Expected { pattern: Some(pattern), family: Some(F::Pattern), ..row };
    let rsl = Some(F::RslRl);
    let of = |at, total| Some((at, Some(total)));
    vec![
        row("v1-kbint", rsl, 36, of(35, 3000), Reward(-314.48), Some((Cause::StoppedFromOutside, "KeyboardInterrupt")), false),
        row("v1-running", rsl, 35, of(34, 3000), Reward(-21169.99), Some((Cause::Diverged, "-0.85 to -21169.99")), false),
        row("v22-total", rsl, 46, of(100, 101), Reward(17.02), None, true),
        row("v230-boot", rsl, 34, of(33, 300), Reward(-7.12), None, false),
        row("v230-midend", rsl, 29, of(120, 300), Reward(-0.71), None, false),
        row("v23-nan", rsl, 1, of(17, 50_000), Reward(2.69), Some((Cause::Nan, "Mean value_function loss")), false),
        row("v40-full", rsl, 45, of(44, 45), Reward(52.81), None, true),
        row("v33-crash", rsl, 13, of(12, 40), Reward(41.19), Some((Cause::Exception, "normal expects all elements of std >= 0.0")), false),
        row("v32-hopper", rsl, 1, of(999, 1000), Reward(1300.70), None, true),
        row("v5-unilab", rsl, 2, of(1999, 2000), Reward(7.15), None, true),
        row("v54-div", rsl, 7, of(224, 3000), Reward(-17797.49), Some((Cause::Diverged, "does not change")), false),
        // One block of each of two runs: bad numbers, and no trend to judge them by.
        row("v5-two", rsl, 2, of(72_690, 222_000), Reward(-8234.63), None, false),
        row("v5-last", rsl, 1, of(29_999, 30_000), Reward(86.47), None, true),
        row("rlg-kbint", Some(F::RlGames), 44, Some((43, None)), Value::None, Some((Cause::StoppedFromOutside, "KeyboardInterrupt")), false),
        row("rlg-illegal", None, 0, None, Value::None, Some((Cause::Cuda, "illegal memory access")), false),
        row("segv-shell", None, 0, None, Value::None, Some((Cause::NativeCrash, "core dumped")), false),
        // 40 tables of rollouts and 5 of evaluations; the last one is at step 499980.
        row("sb3-gl", Some(F::Sb3), 45, Some((40, None)), Reward(123.0), Some((Cause::Exception, "mujoco.FatalError")), false),
        row("skrl-tqdm", None, 0, of(186, 24_000), Value::None, None, false),
        row("hf-cr", Some(F::HuggingFace), 48, of(23_800, 23_800), Labelled("loss", 0.0018), None, true),
        row("hf-threeruns", Some(F::HuggingFace), 46, of(6287, 21_600), Labelled("loss", 0.0037), Some((Cause::Exception, "AssertionError: Provided path")), false),
        row("pl-flat", Some(F::Lightning), 100, Some((99, None)), Labelled("valid_loss", 0.99999), None, true),
        // Rows of six of its epochs were lost in the capture.
        row("yolo-v8", Some(F::Ultralytics), 94, of(100, 100), Labelled("val/mAP50-95", 0.213), None, true),
        own(r"^step (?P<iteration>\d+): train loss (?P<value>\S+)",
            row("oom-nanogpt", None, 1, Some((0, None)), Reward(12.5633), Some((Cause::OutOfMemory, "960.00 MiB")), false)),
        own(LOSSES, row("oom-workers", None, 9, of(400, 2562), Reward(5.7285), Some((Cause::OutOfMemory, "torch.cuda.OutOfMemoryError")), false)),
        own(LOSSES, row("nan-backward", None, 0, None, Value::None, Some((Cause::Nan, "NativeLayerNormBackward0")), false)),
        own(LOSSES, row("nan-harmless", None, 39, of(1650, 2562), Reward(5.4583), Some((Cause::StoppedFromOutside, "CANCELLED")), false)),
        own(LOSSES, row("disk-pickle", None, 65, of(2550, 2562), Reward(0.0), Some((Cause::DiskFull, "Errno 28")), false)),
        own(LOSSES, row("cuda-assert", None, 0, None, Value::None, Some((Cause::Cuda, "device-side assert")), false)),
        row("nccl-watchdog", None, 0, None, Value::None, Some((Cause::Nccl, "BROADCAST")), false),
        // One step, by its progress bar.
        row("kill-slurm", None, 0, of(1, 157), Value::None, Some((Cause::OutOfMemory, "oom_kill event")), false),
        row("kit-ext", None, 0, None, Value::None, None, false),
    ]
}

/// One row of the logs' index: the right reading of one file, found by hand.
struct Row {
    id: String,
    file: String,
    complete_blocks: String,
    last_iteration: String,
    last_value: String,
}

fn logs() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data/logs");
    if folder.is_dir() {
        return Some(folder);
    }
    eprintln!("SKIPPED: no real logs beside the project (../shared/data/logs)");
    None
}

fn rows(folder: &Path) -> Vec<Row> {
    let index = std::fs::read_to_string(folder.join("INDEX.tsv")).unwrap();
    let names: Vec<&str> = index.lines().next().unwrap().split('\t').collect();
    let column = |name: &str| names.iter().position(|other| *other == name).unwrap();
    let columns = ["id", "file", "complete_blocks", "last_iteration", "last_value"].map(column);
    let row = |line: &str| {
        let cells: Vec<&str> = line.split('\t').collect();
        let [id, file, complete_blocks, last_iteration, last_value] =
            columns.map(|column| cells[column].to_owned());
        Row { id, file, complete_blocks, last_iteration, last_value }
    };
    index.lines().skip(1).map(row).collect()
}

fn bytes(folder: &Path, id: &str) -> Vec<u8> {
    let row = rows(folder).into_iter().find(|row| row.id == id).unwrap();
    std::fs::read(folder.join(row.file)).unwrap()
}

fn leading(cell: &str) -> &str {
    cell.split_whitespace().next().unwrap_or_default()
}

fn reading(expected: &Expected) -> LogReading {
    match expected.pattern {
        Some(pattern) => LogReading::of_pattern(Pattern::parse(pattern).unwrap()),
        None => LogReading::new(),
    }
}

fn read(expected: &Expected, bytes: &[u8], chunk: usize) -> (LogReading, Vec<Block>) {
    let mut reading = reading(expected);
    let mut blocks: Vec<Block> =
        bytes.chunks(chunk).flat_map(|piece| reading.push(piece)).collect();
    blocks.extend(reading.finish());
    (reading, blocks)
}

fn last_labelled(blocks: &[Block], label: &str) -> Option<f64> {
    let of = |block: &Block| {
        let mut all = block.losses.iter().chain(&block.extra);
        all.find(|(other, _)| other == label).map(|(_, value)| *value)
    };
    blocks.iter().rev().find_map(of)
}

#[test]
fn every_real_log_reads_as_the_index_says() {
    let Some(folder) = logs() else { return };
    let rows: BTreeMap<String, Row> =
        rows(&folder).into_iter().map(|row| (row.id.clone(), row)).collect();
    let table = expected();
    let known: Vec<&str> = table.iter().map(|expected| expected.id).collect();
    let forgotten: Vec<_> = rows.keys().filter(|id| !known.contains(&id.as_str())).collect();
    assert!(forgotten.is_empty(), "rows without an expected reading: {forgotten:?}");
    let mut wrong = Vec::new();
    for expected in &table {
        let row = &rows[expected.id];
        let (reading, blocks) = read(expected, &bytes(&folder, expected.id), usize::MAX);
        let mut check = |what: &str, found: String, wanted: String| {
            if found != wanted {
                wrong.push(format!("{}: {what}: {found}, not {wanted}", expected.id));
            }
        };
        check("family", format!("{:?}", reading.family()), format!("{:?}", expected.family));
        check("blocks", blocks.len().to_string(), expected.blocks.to_string());
        let at = reading.position().map(|at| (at.iteration, at.total));
        check("position", format!("{at:?}"), format!("{:?}", expected.at));
        let reward = blocks.iter().rev().find_map(|block| block.mean_reward);
        match expected.value {
            Value::None => check("reward", format!("{reward:?}"), "None".to_owned()),
            Reward(value) => check("reward", format!("{reward:?}"), format!("{:?}", Some(value))),
            Labelled(label, value) => {
                let found = last_labelled(&blocks, label);
                check(label, format!("{found:?}"), format!("{:?}", Some(value)));
            }
        }
        let failure = reading.failure();
        let cause = failure.as_ref().map(|finding| finding.cause);
        check("cause", format!("{cause:?}"), format!("{:?}", expected.cause));
        let says = failure.map_or_else(String::new, |finding| finding.evidence);
        if !says.contains(expected.says) {
            check("evidence", says, format!("something with {:?}", expected.says));
        }
        check("finished", reading.is_finished().to_string(), expected.finished.to_string());

        // The index's own cells, where they begin with numbers.
        let counted = match expected.id {
            "sb3-gl" => blocks.iter().filter(|block| block.mean_reward.is_some()).count(),
            "kill-slurm" => usize::try_from(reading.position().unwrap().iteration).unwrap(),
            _ => blocks.len(),
        };
        if let Ok(number) = leading(&row.complete_blocks).parse::<usize>() {
            check("the index's blocks", counted.to_string(), number.to_string());
        }
        let position = row.last_iteration.split("last complete ").last().unwrap().replace(')', "");
        if let Some((at, total)) = leading(&position).split_once('/') {
            let found = reading.position().map(|found| (found.iteration, found.total));
            check(
                "the index's last iteration",
                format!("{found:?}"),
                format!("Some(({at}, Some({total})))"),
            );
        }
        if let (Ok(number), Reward(_)) = (leading(&row.last_value).parse::<f64>(), &expected.value)
        {
            check("the index's last value", format!("{reward:?}"), format!("{:?}", Some(number)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_real_log_reads_the_same_in_pieces_of_any_size() {
    let Some(folder) = logs() else { return };
    for expected in expected() {
        let bytes = bytes(&folder, expected.id);
        // Compared as text: a NaN is not equal to itself.
        let text = |chunk| {
            let (reading, blocks) = read(&expected, &bytes, chunk);
            format!(
                "{blocks:?} {:?} {:?} {:?}",
                reading.failure(),
                reading.position(),
                reading.state()
            )
        };
        let whole = text(usize::MAX);
        for chunk in [1, 7, 4096] {
            assert_eq!(text(chunk), whole, "{} by {chunk}", expected.id);
        }
    }
}

#[test]
fn real_blocks_have_their_version_s_own_lines() {
    let Some(folder) = logs() else { return };
    let blocks = |id: &str| {
        let mut parser = MetricsParser::new();
        parser.push(&bytes(&folder, id));
        parser.finish();
        parser.drain()
    };
    let day_long = blocks("v54-div").pop().unwrap();
    assert!(day_long.eta.unwrap().as_secs() > 86_400, "a timedelta of a day and more");
    assert_eq!(blocks("v23-nan")[0].not_finite().len(), 8);
    assert_eq!(blocks("v40-full").iter().filter(|block| block.mean_reward.is_none()).count(), 2);
    let hopper = blocks("v32-hopper").pop().unwrap();
    assert_eq!(hopper.episode_length, Some(441.78), "not \"Mean episode l\"");
    let two = blocks("v5-two");
    let steps: Vec<_> = two.iter().map(|block| block.total_steps).collect();
    assert_eq!(steps, [Some(144_310_272), Some(45_285_376)]);
    assert!(two[0].losses.contains(&("Mean value loss".to_owned(), 941_467.895_3)));
    let sb3 = blocks("sb3-gl");
    let without_train = |block: &&Block| block.mean_reward.is_some() && block.losses.is_empty();
    assert_eq!(sb3.iter().filter(without_train).count(), 5);
    assert_eq!(sb3.iter().filter(|block| block.mean_reward.is_none()).count(), 5);
    assert_eq!(sb3.last().unwrap().total_steps, Some(499_980));
    let yolo = blocks("yolo-v8").pop().unwrap();
    assert_eq!(yolo.losses[0], ("box_loss".to_owned(), 1.247));
    assert_eq!(blocks("pl-flat").pop().unwrap().total_steps, Some(8900));
}

/// One meter of a test that was never filled is no NaN of the training.
#[test]
fn accuracies_are_read_by_a_pattern_and_the_nan_beside_them_is_harmless() {
    let Some(folder) = logs() else { return };
    // The line has no counter; the 5 of the second accuracy stands in for one.
    let pattern = r"test_loss .*Accuracy@1 (?P<value>\S+) - avg. Accuracy@(?P<iteration>5)";
    for (id, accuracy) in [("nan-harmless", 3.134), ("disk-pickle", 2.826)] {
        let mut reading = LogReading::of_pattern(Pattern::parse(pattern).unwrap());
        let blocks = reading.push(&bytes(&folder, id));
        assert_eq!(blocks.last().unwrap().mean_reward, Some(accuracy), "{id}");
        assert_ne!(reading.failure().map(|finding| finding.cause), Some(Cause::Nan), "{id}");
    }
}

fn replay(folder: &Path, id: &str, plateau: PlateauRule) -> Replay {
    let expected = expected().into_iter().find(|expected| expected.id == id).unwrap();
    let options = ReplayOptions { plateau, stall: chrono::TimeDelta::seconds(600), rate: None };
    let mut replaying = Replaying::new(reading(&expected), options);
    replaying.push(&bytes(folder, id));
    replaying.end()
}

fn plateaus(replay: &Replay) -> Vec<u64> {
    let plateaus = replay.pages.iter().filter(|page| page.kind == "plateau");
    plateaus.filter_map(|page| page.iteration).collect()
}

/// Excerpts are shorter than the default window, so a shorter one is set: with the relative spread only
/// the run that stands still at a bad level is paged.
#[test]
fn only_the_true_plateau_is_paged_with_the_documented_options() {
    let Some(folder) = logs() else { return };
    for window in [15, 20] {
        let rule = PlateauRule { window, relative: Some(0.03), ..PlateauRule::default() };
        for id in ["v40-full", "v22-total", "v230-boot", "v33-crash", "v5-unilab"] {
            assert_eq!(plateaus(&replay(&folder, id, rule)), [0_u64; 0], "{id}, window {window}");
        }
        let first = plateaus(&replay(&folder, "v230-midend", rule))[0];
        assert!((107..=117).contains(&first), "{first}");
    }
    // Without it a window of 15 pages where the index says that a page is wrong.
    let narrow = PlateauRule { window: 15, ..PlateauRule::default() };
    assert_eq!(plateaus(&replay(&folder, "v22-total", narrow))[0], 73);
    assert_eq!(plateaus(&replay(&folder, "v40-full", narrow)), [39]);
    let late = PlateauRule { after: Some(81), ..narrow };
    assert!(plateaus(&replay(&folder, "v22-total", late)).iter().all(|at| *at >= 97));
    let learnt = PlateauRule { below: Some(50.0), ..narrow };
    assert_eq!(plateaus(&replay(&folder, "v40-full", learnt)), [0_u64; 0]);
}

#[test]
fn no_healthy_run_is_paged_by_the_defaults() {
    let Some(folder) = logs() else { return };
    for expected in expected() {
        let replay = replay(&folder, expected.id, PlateauRule::default());
        let kinds: Vec<_> = replay.pages.iter().map(|page| page.kind).collect();
        match expected.cause {
            None => assert!(kinds.is_empty(), "{}: {:?}", expected.id, replay.pages),
            Some(_) => assert!(kinds.contains(&"failure"), "{}: {kinds:?}", expected.id),
        }
    }
}

/// What the divergence rule would have saved: the reward was beyond return half-way through the log.
#[test]
fn a_diverging_run_is_paged_long_before_its_log_ends() {
    let Some(folder) = logs() else { return };
    for (id, latest) in [("v1-running", 15), ("v1-kbint", 24)] {
        let replay = replay(&folder, id, PlateauRule::default());
        let page = &replay.pages[0];
        assert!(page.says.contains("diverged"), "{page:?}");
        assert!(page.iteration.unwrap() <= latest, "{id}: {page:?}");
        assert!(page.saved.iterations.unwrap() >= 10 && page.saved.sec.unwrap() > 0, "{page:?}");
        assert!(page.saved.iterations_to_come.unwrap() > 2900);
    }
}
