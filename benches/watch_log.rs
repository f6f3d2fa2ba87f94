//! Bytes a second of `watch`'s readers over a long training log, against `grep -c` on the same file.
//! `cargo bench --bench watch_log -- [MiB [runs]]`; put TMPDIR on a RAM disk to leave the disk out.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    missing_docs,
    reason = "a bench"
)]

use podtether::watch::LogReading;
use podtether::watch::metrics::MetricsParser;
use std::fs::File;
use std::io::{BufWriter, Read as _, Write as _};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// How much is read at once; what `watch` takes in one look.
const PIECE: usize = 256 * 1024;

fn main() {
    let numbers: Vec<u64> = std::env::args().skip(1).filter_map(|word| word.parse().ok()).collect();
    let (mib, runs) = (*numbers.first().unwrap_or(&1024), *numbers.get(1).unwrap_or(&3));
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("out.log");
    let blocks = write_log(&log, mib << 20);
    let bytes = std::fs::metadata(&log).unwrap().len();
    println!("{} MiB, {blocks} blocks; median of {runs} runs", bytes >> 20);
    let ways: [(&str, &dyn Fn() -> u64); 4] = [
        ("watch: numbers and failures", &|| whole(&log)),
        ("numbers alone", &|| numbers_alone(&log)),
        ("grep -c 'Mean reward'", &|| grep(&log, "Mean reward")),
        ("grep -cE of two words", &|| grep(&log, "Mean reward|Traceback")),
    ];
    let mut times = vec![Vec::new(); ways.len()];
    // In turns, so that what else the machine does falls on all of them; the first does not count.
    for run in 0..=runs {
        for ((name, way), times) in ways.iter().zip(&mut times) {
            let start = Instant::now();
            assert_eq!(way(), blocks, "{name}");
            if run > 0 {
                times.push(start.elapsed());
            }
        }
    }
    for ((name, _), times) in ways.iter().zip(&mut times) {
        times.sort();
        let median: Duration = times[times.len() / 2];
        let speed = bytes as f64 / 1e6 / median.as_secs_f64();
        println!("{name:<30} {:>8.2} s {speed:>10.0} MB/s", median.as_secs_f64());
    }
}

fn pieces(log: &Path, mut take: impl FnMut(&[u8])) {
    let mut file = File::open(log).unwrap();
    let mut piece = vec![0; PIECE];
    loop {
        match file.read(&mut piece).unwrap() {
            0 => return,
            length => take(&piece[..length]),
        }
    }
}

fn whole(log: &Path) -> u64 {
    let mut reading = LogReading::new();
    let mut blocks = 0;
    pieces(log, |piece| blocks += reading.push(piece).len() as u64);
    assert!(reading.failure().is_none());
    blocks
}

fn numbers_alone(log: &Path) -> u64 {
    let mut parser = MetricsParser::new();
    let mut blocks = 0;
    pieces(log, |piece| {
        parser.push(piece);
        blocks += parser.drain().len() as u64;
    });
    blocks
}

fn grep(log: &Path, words: &str) -> u64 {
    let output = Command::new("grep").args(["-cE", words]).arg(log).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().parse().unwrap()
}

/// Blocks as rsl_rl 3 prints them, with the terms of a reward that Isaac Lab adds.
fn write_log(path: &Path, bytes: u64) -> u64 {
    let mut file = BufWriter::new(File::create(path).unwrap());
    let (mut written, mut blocks) = (0, 0);
    while written < bytes {
        let terms: String = (0..12)
            .map(|term| format!("{:>40} {:.4}\n", format!("Episode_Reward/term_{term}:"), 0.1))
            .collect();
        let block = format!(
            "{}\n\x1b[1m{:^80}\x1b[0m \n\n{:>41} 53248 steps/s (collection: 0.700s, learning 0.220s)\n\
             {:>41} 0.0107\n{:>41} -0.0123\n{:>41} {:.2}\n{:>41} 178.5\n{terms}{}\n\
             {:>41} {}\n{:>41} 0.92s\n{:>41} 00:10:00\n{:>41} 01:00:00\n\n",
            "#".repeat(80),
            format!("Learning iteration {blocks}/100000000"),
            "Computation:",
            "Mean value_function loss:",
            "Mean surrogate loss:",
            "Mean reward:",
            f64::from(u32::try_from(blocks % 1000).unwrap()) / 10.0,
            "Mean episode length:",
            "-".repeat(80),
            "Total timesteps:",
            blocks * 49_152,
            "Iteration time:",
            "Time elapsed:",
            "ETA:",
        );
        file.write_all(block.as_bytes()).unwrap();
        written += block.len() as u64;
        blocks += 1;
    }
    file.flush().unwrap();
    blocks
}
