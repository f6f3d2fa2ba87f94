//! The parser against real logs. They are no part of the project (some carry no licence) and lie
//! beside it where they are present at all; everything else about the parser is tested beside it.

use podtether::watch::metrics::{Block, MetricsParser};
use std::path::{Path, PathBuf};

/// One row of the logs' index: the right reading of one file, found by hand.
struct Row {
    id: String,
    file: String,
    is_rsl_rl: bool,
    complete_blocks: usize,
    last_iteration: Option<(u64, u64)>,
    last_reward: Option<f64>,
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
    let [id, file, format] = ["id", "file", "format"].map(column);
    let [count, last, value] = ["complete_blocks", "last_iteration", "last_value"].map(column);
    let leading = |cell: &str| cell.split_whitespace().next().unwrap_or_default().to_owned();
    index
        .lines()
        .skip(1)
        .map(|line| {
            let cells: Vec<&str> = line.split('\t').collect();
            let is_rsl_rl = cells[format].starts_with("rsl ");
            // "225/3000 (last complete 224/3000)": the cut block does not count.
            let position = cells[last].split("last complete ").last().unwrap().replace(')', "");
            let position = leading(&position);
            let last_iteration = position
                .split_once('/')
                .and_then(|(at, of)| Some((at.parse().ok()?, of.parse().ok()?)));
            Row {
                id: cells[id].to_owned(),
                file: cells[file].to_owned(),
                is_rsl_rl,
                complete_blocks: if is_rsl_rl { leading(cells[count]).parse().unwrap() } else { 0 },
                last_iteration: last_iteration.filter(|_| is_rsl_rl),
                last_reward: is_rsl_rl.then(|| leading(cells[value]).parse().unwrap()),
            }
        })
        .collect()
}

fn read(bytes: &[u8], chunk: usize) -> Vec<Block> {
    let mut parser = MetricsParser::new();
    bytes.chunks(chunk).for_each(|piece| parser.push(piece));
    parser.finish();
    parser.drain()
}

#[test]
fn every_real_log_reads_as_the_index_says() {
    let Some(folder) = logs() else { return };
    let rows = rows(&folder);
    assert!(rows.iter().filter(|row| row.is_rsl_rl).count() >= 10, "the index has lost its rows");
    for row in rows {
        let blocks = read(&std::fs::read(folder.join(&row.file)).unwrap(), usize::MAX);
        assert_eq!(blocks.len(), row.complete_blocks, "blocks of {}", row.id);
        let last = blocks.last();
        let position = last.map(|block| (block.iteration, block.total_iterations.unwrap()));
        assert_eq!(position, row.last_iteration, "last iteration of {}", row.id);
        let reward = last.and_then(|block| block.mean_reward);
        assert_eq!(reward, row.last_reward, "last reward of {}", row.id);
    }
}

#[test]
fn a_real_log_reads_the_same_in_pieces_of_any_size() {
    let Some(folder) = logs() else { return };
    for row in rows(&folder).iter().filter(|row| row.is_rsl_rl) {
        let bytes = std::fs::read(folder.join(&row.file)).unwrap();
        // Compared as text: a NaN is not equal to itself.
        let whole = format!("{:?}", read(&bytes, usize::MAX));
        for chunk in [1, 7, 4096] {
            assert_eq!(format!("{:?}", read(&bytes, chunk)), whole, "{} by {chunk}", row.id);
        }
    }
}

#[test]
fn real_blocks_have_their_version_s_own_lines() {
    let Some(folder) = logs() else { return };
    let blocks = |id: &str| {
        let row = rows(&folder).into_iter().find(|row| row.id == id).unwrap();
        read(&std::fs::read(folder.join(row.file)).unwrap(), usize::MAX)
    };
    let day_long = blocks("v54-div").pop().unwrap();
    assert!(day_long.eta.unwrap().as_secs() > 86_400, "a timedelta of a day and more");
    assert_eq!(blocks("v23-nan")[0].not_finite().len(), 8);
    assert_eq!(blocks("v40-full").iter().filter(|block| block.mean_reward.is_none()).count(), 2);
    let hopper = blocks("v32-hopper").pop().unwrap();
    assert_eq!(hopper.episode_length, Some(441.78), "not \"Mean episode l\"");
}
