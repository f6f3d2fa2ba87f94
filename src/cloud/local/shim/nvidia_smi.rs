//! The stand-in nvidia-smi: the queries that podtether and training scripts make.

use super::Output;
use crate::cloud::local::pod::{Folder, Machine};
use std::fmt::Write as _;
use std::path::Path;

/// Use of the GPU, which a program on the pod may pretend by writing `UTIL MEMORY_MIB` into
/// `$TMPDIR/gpu-use`.
const USE_FILE: &str = "tmp/gpu-use";

pub fn run(pod: &Path, words: &[&str]) -> Output {
    let folder = Folder::new(pod.to_owned());
    let machine = std::fs::read_to_string(folder.machine())
        .ok()
        .and_then(|text| serde_json::from_str::<Machine>(&text).ok());
    // What the real one says on a pod that came back without a GPU.
    let Some(machine) = machine.filter(|machine| machine.count > 0) else {
        return Output { out: "No devices were found\n".to_owned(), code: 6, ..Output::default() };
    };
    let in_use = std::fs::read_to_string(folder.disk().join(USE_FILE)).unwrap_or_default();
    let mut numbers = in_use.split_whitespace().map(|word| word.parse::<u32>().unwrap_or(0));
    let (busy, used) = (numbers.next().unwrap_or(0).min(100), numbers.next().unwrap_or(1));
    let query = words.iter().find_map(|word| word.strip_prefix("--query-gpu="));
    let format = words.iter().find_map(|word| word.strip_prefix("--format="));
    match (query, format) {
        (Some(query), Some(format)) => table(&machine, query, format, busy, used),
        (Some(_), None) => Output::fail(1, "\"--format=\" is missing\n"),
        (None, _) if words.contains(&"-L") => Output::say(
            (0..machine.count)
                .map(|index| format!("GPU {index}: {} (UUID: GPU-local-{index})\n", machine.gpu))
                .collect::<String>(),
        ),
        (None, _) => Output::say(format!(
            "NVIDIA-SMI {0}   Driver Version: {0}   CUDA Version: {1}\n{2} x {3} \
             (podtether's stand-in)\n",
            machine.driver, machine.cuda, machine.count, machine.gpu
        )),
    }
}

fn table(machine: &Machine, query: &str, format: &str, busy: u32, used: u32) -> Output {
    let options: Vec<&str> = format.split(',').map(str::trim).collect();
    let units = !options.contains(&"nounits");
    let fields: Vec<&str> = query.split(',').map(str::trim).collect();
    let mut text = String::new();
    for index in 0..machine.count {
        let mut row = Vec::new();
        for field in &fields {
            let with = |number: u32, unit: &str| {
                if units { format!("{number} {unit}") } else { number.to_string() }
            };
            row.push(match *field {
                "index" => index.to_string(),
                "count" => machine.count.to_string(),
                "name" | "gpu_name" => machine.gpu.clone(),
                "uuid" | "gpu_uuid" => format!("GPU-local-{index}"),
                "driver_version" => machine.driver.clone(),
                "memory.total" => with(machine.memory_mib, "MiB"),
                "memory.used" => with(used, "MiB"),
                "memory.free" => with(machine.memory_mib.saturating_sub(used), "MiB"),
                "utilization.gpu" => with(busy, "%"),
                "temperature.gpu" => "41".to_owned(),
                other => {
                    let text = format!("Field \"{other}\" is not a valid field to query.\n");
                    return Output::fail(2, text);
                }
            });
        }
        let _ = writeln!(text, "{}", row.join(", "));
    }
    if !options.contains(&"noheader") {
        text.insert_str(0, &format!("{}\n", fields.join(", ")));
    }
    Output::say(text)
}
