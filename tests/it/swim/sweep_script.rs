//! examples/learning-to-swim/axis_sweep.py on its simulated vehicle, and the drop-in against the
//! geometry file that it is held to.

use super::{drop_in, of_repository};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

struct Sweep {
    folder: TempDir,
    geometry: PathBuf,
    drop_in: PathBuf,
}

impl Sweep {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            geometry: of_repository("examples/learning-to-swim/config/bluerov2_heavy.yaml"),
            drop_in: drop_in(),
        }
    }

    fn marker(&self) -> PathBuf {
        self.folder.path().join("markers/PASS")
    }

    /// Exit code, stdout, stderr.
    fn run(&self, more: &[&str]) -> (i32, String, String) {
        let output = Command::new("python3")
            .arg(of_repository("examples/learning-to-swim/axis_sweep.py"))
            .args(["--backend", "simulated", "--geometry"])
            .arg(&self.geometry)
            .arg("--drop-in")
            .arg(&self.drop_in)
            .arg("--marker")
            .arg(self.marker())
            .args(more)
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
    }

    fn stale(&self) {
        fs::create_dir_all(self.marker().parent().unwrap()).unwrap();
        fs::write(self.marker(), "of an earlier sweep").unwrap();
    }

    /// The same with a copy of a file in which a text was replaced.
    fn changed(&self, path: &Path, from: &str, to: &str) -> PathBuf {
        let text = fs::read_to_string(path).unwrap();
        assert!(text.contains(from), "{from}");
        let copy = self.folder.path().join(path.file_name().unwrap());
        fs::write(&copy, text.replacen(from, to, 1)).unwrap();
        copy
    }
}

#[test]
fn the_shipped_thrusters_pass_and_leave_the_marker() {
    let sweep = Sweep::new();
    let (code, out, err) = sweep.run(&[]);
    assert_eq!(code, 0, "{out}{err}");
    assert_eq!(out.matches(": ok\n").count(), 16, "eight thrusters, forwards and backwards: {out}");
    let marker: Value = serde_json::from_slice(&fs::read(sweep.marker()).unwrap()).unwrap();
    assert_eq!(
        (&marker["backend"], marker["results"].as_array().unwrap().len()),
        (&"simulated".into(), 16)
    );
    for hash in ["script_sha256", "geometry_sha256"] {
        assert_eq!(marker[hash].as_str().unwrap().len(), 64);
    }
}

/// Whichever thruster is turned round is named, and no other; the marker of before is gone.
#[test]
fn one_thruster_turned_round_fails_by_name_and_takes_the_marker_away() {
    let sweep = Sweep::new();
    for flipped in 1..=8 {
        sweep.stale();
        let (code, out, _) = sweep.run(&["--flip", &flipped.to_string()]);
        assert_eq!(code, 1, "{out}");
        assert!(!sweep.marker().exists(), "a stale PASS is no PASS");
        for thruster in 1..=8 {
            for sign in ["+", "-"] {
                let line = format!("thruster {thruster} {sign}0.50: ");
                let told = out.lines().find_map(|one| one.strip_prefix(&line)).unwrap();
                assert_eq!(told != "ok", thruster == flipped, "{flipped}: {out}");
            }
        }
    }
}

/// A mistake in either of the two descriptions shows: a sign, a swap of two thrusters, a missing one.
#[test]
fn a_mistake_in_the_drop_in_or_in_the_geometry_shows() {
    let plain = Sweep::new();
    let with_drop_in = |from: &str, to: &str| {
        let sweep = Sweep::new();
        let drop_in = sweep.changed(&plain.drop_in, from, to);
        Sweep { drop_in, ..sweep }
    };
    let with_geometry = |from: &str, to: &str| {
        let sweep = Sweep::new();
        let geometry = sweep.changed(&plain.geometry, from, to);
        Sweep { geometry, ..sweep }
    };
    for (sweep, words) in [
        (
            with_drop_in("(0.0, 0.0, 1.0)", "(0.0, 0.0, -1.0)"),
            "thruster 5 +0.50: z: expected -, found +",
        ),
        (
            with_drop_in("(0.156, -0.111, -0.085)", "(0.156, -0.111, 0.085)"),
            "thruster 1 +0.50: roll: expected +, found -",
        ),
        (
            with_geometry("direction: [0.7071, 0.7071, 0.0]", "direction: [-0.7071, 0.7071, 0.0]"),
            "thruster 2 +0.50: x: expected -",
        ),
    ] {
        sweep.stale();
        let (code, out, err) = sweep.run(&[]);
        assert_eq!(code, 1, "{words}: {out}{err}");
        assert!(out.contains(words), "{words}: {out}");
        assert!(!sweep.marker().exists());
    }
    for (sweep, words) in [
        (with_geometry("  - {id: 8,", "  # - {id: 8,"), "8 thrusters and the geometry 7"),
        (with_geometry("  - {id: 4,", "  - {id: 9,"), "thruster 9 stands where 4 should"),
        (
            with_geometry("direction: [0.0, 0.0, -1.0]", "direction: [0.0, 0.0]"),
            "no list of 3 numbers",
        ),
        (with_geometry("  mass: 13.5", "  mass: .nan"), "could not be told"),
        (
            with_geometry("  - {id: 3, position", "  - {id: 3, place"),
            "thruster 4 stands where 3 should",
        ),
        (with_drop_in("THRUSTERS = (", "OTHERS = ("), "has no THRUSTERS"),
        (Sweep { geometry: "/nonexistent.yaml".into(), ..Sweep::new() }, "could not be told"),
    ] {
        sweep.stale();
        let (code, out, err) = sweep.run(&[]);
        assert!(code == 2 && err.contains(words), "{words}: {code} {out}{err}");
        assert!(!sweep.marker().exists(), "not told is not passed");
    }
}

/// The rotation that each thruster is given turns the x axis to where the thruster pushes.
#[test]
fn the_drop_ins_orientations_turn_the_x_axis_to_the_push() {
    let code = "
import sys
text = open(sys.argv[1]).read()
names = {}
exec(compile(text.replace('from .thruster_dynamics import', 'pass #'), 'drop_in', 'exec'), names)
def turned(q):
    w, x, y, z = q
    return (1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y))
for direction in [d for _, d in names['THRUSTERS']] + [(1, 0, 0), (-1, 0, 0), (0, 0.6, -0.8)]:
    length = sum(part * part for part in direction) ** 0.5
    for a, b in zip(turned(names['quaternion'](direction)), direction):
        assert abs(a - b / length) < 1e-9, (direction, a, b)
print(len(names['THRUSTERS']))
";
    let output = Command::new("python3").args(["-c", code]).arg(drop_in()).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "8", "{output:?}");
}
