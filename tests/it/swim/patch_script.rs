//! remote/apply_bluerov2_patch.py on a checkout of excerpts that were written for it, and on the real
//! source where a checkout of it is at hand.

use super::{checkout, drop_in, git, of_repository};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

struct Rig {
    mount: TempDir,
    checkout: PathBuf,
    commit: String,
}

/// What the script answered, with its exit code.
struct Said {
    code: i32,
    json: Value,
}

impl Said {
    fn of(output: &Output) -> Self {
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut lines = text.lines().rev();
        assert_eq!(lines.next(), Some("podtether-patch-end"), "{output:?}");
        let json = lines.next().unwrap().strip_prefix("podtether-patch ").unwrap();
        Self { code: output.status.code().unwrap(), json: serde_json::from_str(json).unwrap() }
    }

    fn status(&self) -> (&str, i32) {
        (self.json["status"].as_str().unwrap(), self.code)
    }

    fn reason(&self) -> &str {
        assert_eq!(self.status(), ("refused", 3), "{}", self.json);
        assert!(!self.json["fix"].as_str().unwrap().is_empty());
        self.json["reason"].as_str().unwrap()
    }
}

impl Rig {
    fn new() -> Self {
        let mount = tempfile::Builder::new().prefix("it's a mount ").tempdir().unwrap();
        let (checkout, commit) = checkout(mount.path());
        Self { mount, checkout, commit }
    }

    fn marker(&self) -> PathBuf {
        self.mount.path().join("markers/bluerov2_patch_applied")
    }

    fn command(&self, verb: &str) -> Command {
        self.command_with(verb, &drop_in())
    }

    fn command_with(&self, verb: &str, drop_in: &Path) -> Command {
        let mut command = Command::new("python3");
        command
            .arg(of_repository("remote/apply_bluerov2_patch.py"))
            .args([verb, "--commit", &self.commit, "--checkout"])
            .arg(&self.checkout)
            .arg("--marker")
            .arg(self.marker())
            .arg(drop_in);
        command
    }

    fn said(&self, verb: &str) -> Said {
        Said::of(&self.command(verb).output().unwrap())
    }

    /// Every file of the checkout, but for git's own, and the marker.
    fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut files = BTreeMap::new();
        let mut folders = vec![self.checkout.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() && path.file_name().unwrap() != ".git" {
                    folders.push(path);
                } else if path.is_file() {
                    files.insert(path.clone(), fs::read(path).unwrap());
                }
            }
        }
        if let Ok(marker) = fs::read(self.marker()) {
            files.insert(self.marker(), marker);
        }
        files
    }

    fn edit(&self, file: &str, from: &str, to: &str) {
        let path = self.checkout.join(file);
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{text}");
        fs::write(path, text.replace(from, to)).unwrap();
    }

    fn commit_all(&mut self) {
        git(&self.checkout, &["commit", "-q", "-a", "-m", "changed"]);
        self.commit = git(&self.checkout, &["rev-parse", "HEAD"]);
    }

    /// A journal as a run leaves it that was killed after `done` renames.
    fn kill_after(&self, done: usize) {
        let code = "\
import os, runpy, sys
left = int(sys.argv[1])
sys.argv = sys.argv[2:]
real, root = os.replace, os.path.realpath(sys.argv[sys.argv.index('--checkout') + 1])
def replace(old, new):
    global left
    if os.path.realpath(new).startswith(root + os.sep):
        if left == 0:
            os.kill(os.getpid(), 9)
        left -= 1
    real(old, new)
    if left == 0 and os.path.basename(new).startswith('bluerov2_patch_applied'):
        os.kill(os.getpid(), 9)
os.replace = replace
runpy.run_path(sys.argv[0], run_name='__main__')
";
        let plain = self.command("apply");
        let ended = Command::new("python3")
            .args(["-c", code, &done.to_string()])
            .args(plain.get_args())
            .output()
            .unwrap();
        assert_eq!(ended.status.code(), None, "it was to be killed: {ended:?}");
    }
}

#[test]
fn the_fourteen_edits_go_in_once_and_a_repeat_changes_nothing() {
    let rig = Rig::new();
    let before = rig.files();
    let check = rig.said("check");
    assert_eq!(check.status(), ("would_apply", 0));
    assert_eq!(rig.files(), before, "a check changes nothing");
    let applied = rig.said("apply");
    assert_eq!(applied.status(), ("applied", 0), "{}", applied.json);
    assert_eq!(applied.json["edits"], check.json["edits"]);
    assert_eq!(applied.json["edits"].as_array().unwrap().len(), 14);

    let env = fs::read_to_string(rig.checkout.join("warpauv_env.py")).unwrap();
    for (line, count) in [
        ("from .bluerov2_thruster_dynamics import DynamicsFirstOrder", 1),
        ("shape=(8,)", 1),
        ("    num_actions = 8\n", 1),
        ("self.num_envs, 8, device", 1),
        ("DynamicsFirstOrder(self.num_envs, 8, ", 1),
        ("torch.zeros((self.num_envs, 8, 3)", 2),
        ("    sixes = [6, 6]\n", 1),
        ("    volume = 0.0134 # cubic metres\n", 1),
        ("    # volume = 0.03\n", 1),
        ("    mass = 13.5 # kg\n", 1),
        ("[:, 0] = 0.26\n", 1),
        ("[:, 1] = 0.23\n", 1),
        ("[:, 2] = 0.37\n", 1),
        ("        # com_to_cob_offset_radius = 0 # none\n", 1),
        ("        com_to_cob_offset_radius = 0.0164285714 # large\n", 1),
        ("        # volume_range = [0.022747843530591776, 0.022747843530591776] # none\n", 1),
        ("        volume_range = [0.0125164, 0.0142836] # large\n", 1),
    ] {
        assert_eq!(env.matches(line).count(), count, "{line:?} in\n{env}");
    }
    let asset = fs::read_to_string(rig.checkout.join("assets/warpauv.py")).unwrap();
    assert!(asset.contains("copy_from_source=False,\n        mass_props=sim_utils.MassPropertiesCfg(mass=13.5),\n    ),"));
    let marker: Value = serde_json::from_slice(&fs::read(rig.marker()).unwrap()).unwrap();
    assert_eq!((&marker["edits"], &marker["commit"]), (&14.into(), &rig.commit.clone().into()));
    assert!(marker["patched_at"].as_str().unwrap().ends_with('Z'));

    let after = rig.files();
    for verb in ["apply", "check"] {
        assert_eq!(rig.said(verb).status(), ("already", 0));
        assert_eq!(rig.files(), after, "a repeat changes nothing");
    }
    // A level that was chosen later is no change of somebody's.
    rig.edit("warpauv_env.py", "radius = 0.0164285714 #", "radius = 0 #");
    rig.edit("warpauv_env.py", "[0.0125164, 0.0142836]", "[0.0134, 0.0134]");
    let chosen = rig.files();
    assert_eq!(rig.said("apply").status(), ("already", 0));
    assert_eq!(rig.files(), chosen);
    fs::remove_file(rig.marker()).unwrap();
    assert_eq!(
        rig.said("apply").status(),
        ("applied", 0),
        "a marker that was taken away comes back"
    );
    assert!(rig.marker().is_file());
    assert!(!rig.checkout.join(".git/podtether-patch").exists(), "nothing is left of the copy");
}

/// Whatever does not fit is refused by name, before anything is changed.
#[test]
fn what_does_not_fit_is_refused_by_name_and_nothing_is_changed() {
    type Break = fn(&mut Rig);
    let cases: [(&str, Break); 10] = [
        ("is at commit", |rig| rig.commit = "7c5ebe7f7a08acd2570b5fba328e92b7f59f6794".to_owned()),
        ("has changes of somebody: warpauv_env.py", |rig| {
            rig.edit("warpauv_env.py", "sixes = [6, 6]", "sixes = [7]");
        }),
        ("edit 3/14 (number of actions) does not fit: its anchor is 0 times", |rig| {
            rig.edit("warpauv_env.py", "num_actions = 6", "num_actions = 7");
            rig.commit_all();
        }),
        (
            "edit 6/14 (buffers of forces and torques) does not fit: its anchor is 1 times in warpauv_env.py, and not 2",
            |rig| {
                rig.edit(
                    "warpauv_env.py",
                    "torques = torch.zeros((self.num_envs, 6, 3)",
                    "torques = torch.zeros((1, 6, 3)",
                );
                rig.commit_all();
            },
        ),
        ("edit 8/14 (mass in kg) does not fit: its anchor is 2 times", |rig| {
            rig.edit(
                "warpauv_env.py",
                "    mass = 2.2701e+01 # kg\n",
                "    mass = 2.2701e+01 # kg\n    mass = 2.2701e+01 # kg\n",
            );
            rig.commit_all();
        }),
        ("edit 14/14 (mass in PhysX) does not fit", |rig| {
            rig.edit("assets/warpauv.py", "copy_from_source=False", "copy_from_source=True");
            rig.commit_all();
        }),
        ("would not compile", |rig| {
            rig.edit("warpauv_env.py", "        return forces, torques", "       return (");
            rig.commit_all();
        }),
        ("assets/warpauv.py is not a plain file", |rig| {
            fs::remove_file(rig.checkout.join("assets/warpauv.py")).unwrap();
        }),
        ("there is a second checkout at", |rig| {
            let second = rig
                .mount
                .path()
                .join("IsaacLab/source/isaaclab_tasks/isaaclab_tasks/direct/isaac-auv-env");
            fs::create_dir_all(&second).unwrap();
            fs::copy(rig.checkout.join("warpauv_env.py"), second.join("warpauv_env.py")).unwrap();
        }),
        ("is no checkout that git can read", |rig| {
            fs::remove_dir_all(rig.checkout.join(".git")).unwrap();
        }),
    ];
    for (reason, spoil) in cases {
        let mut rig = Rig::new();
        spoil(&mut rig);
        let before = rig.files();
        let said = rig.said("apply");
        assert!(said.reason().contains(reason), "{reason}: {}", said.json);
        assert_eq!(rig.files(), before, "{reason}");
        // Only a compilation needs what a check does not write.
        if !reason.contains("compile") {
            assert_eq!(rig.said("check").reason(), said.reason());
        }
    }
    let rig = Rig::new();
    fs::remove_dir_all(&rig.checkout).unwrap();
    assert!(rig.said("apply").reason().contains("there is no checkout at"));
}

#[test]
fn a_link_from_isaac_lab_to_the_one_checkout_is_no_second_one() {
    let rig = Rig::new();
    let direct = rig.mount.path().join("IsaacLab/source/isaaclab_tasks/isaaclab_tasks/direct");
    fs::create_dir_all(&direct).unwrap();
    std::os::unix::fs::symlink(&rig.checkout, direct.join("isaac-auv-env")).unwrap();
    assert_eq!(rig.said("apply").status(), ("applied", 0));
}

#[test]
fn a_drop_in_that_is_broken_missing_or_another_one_is_refused() {
    let rig = Rig::new();
    let folder = tempfile::tempdir().unwrap();
    let other = folder.path().join("bluerov2_thruster_dynamics.py");
    let said = |path: &Path| Said::of(&rig.command_with("apply", path).output().unwrap());
    let before = rig.files();
    assert!(said(&other).reason().contains("there is no"));
    fs::write(&other, "def broken(:\n").unwrap();
    assert!(said(&other).reason().contains("bluerov2_thruster_dynamics.py would not compile"));
    assert!(said(Path::new("/x/other.py")).reason().contains("and not bluerov2"));
    assert_eq!(rig.files(), before);
    assert_eq!(rig.said("apply").status(), ("applied", 0));
    fs::write(&other, "THRUSTERS = ()\n").unwrap();
    assert!(said(&other).reason().contains("is patched, with another"));
}

/// All or nothing, also for a run that is killed after any of its steps: the next one puts back what
/// was changed, and does all of it.
#[test]
fn a_run_that_was_killed_is_put_back_by_the_next() {
    for done in 0..4 {
        let rig = Rig::new();
        let before = rig.files();
        rig.kill_after(done);
        let marked = rig.marker().exists();
        assert_eq!(marked, done == 3, "the marker comes last");
        let half = rig.files();
        let check = rig.said("check");
        assert_eq!(check.status(), (if marked { "already" } else { "would_apply" }, 0), "{done}");
        assert_eq!(rig.files(), half, "a check changes nothing");
        if done == 2 {
            // Nothing is applied where it does not fit, and yet the half-done is put back.
            let said = Said::of(
                &rig.command_with("apply", Path::new("/gone/bluerov2_thruster_dynamics.py"))
                    .output()
                    .unwrap(),
            );
            assert!(said.reason().contains("there is no"));
            assert_eq!(rig.files(), before, "put back");
        }
        let word = if marked { "already" } else { "applied" };
        assert_eq!(rig.said("apply").status(), (word, 0), "{done}");
        assert_eq!(rig.said("apply").status(), ("already", 0));
    }
}

/// A volume that fails half-way: everything is put back, and it is said.
#[test]
fn a_failure_on_the_way_puts_everything_back() {
    let rig = Rig::new();
    let before = rig.files();
    // The marker's folder is a file: the last step fails.
    fs::write(rig.mount.path().join("markers"), "").unwrap();
    let said = rig.said("apply");
    assert_eq!(said.status(), ("failed", 1), "{}", said.json);
    assert_eq!(rig.files(), before);
    fs::remove_file(rig.mount.path().join("markers")).unwrap();
    assert_eq!(rig.said("apply").status(), ("applied", 0));
}

/// The real source, where there is a checkout of it at the pinned commit: named by
/// PODTETHER_TEST_UPSTREAM, or beside the project. It is copied; nothing of it is kept here.
#[test]
fn the_edits_fit_the_real_source_at_its_pinned_commit() {
    const PINNED: &str = "7c5ebe7f7a08acd2570b5fba328e92b7f59f6794";
    let named = std::env::var_os("PODTETHER_TEST_UPSTREAM").map(PathBuf::from);
    let upstream = named.unwrap_or_else(|| of_repository("../isaac-auv-env"));
    if !upstream.join("warpauv_env.py").is_file() {
        println!("skipped: no checkout of isaac-auv-env at {}", upstream.display());
        return;
    }
    let rig = Rig::new();
    for file in ["warpauv_env.py", "assets/warpauv.py"] {
        let text = git(&upstream, &["show", &format!("{PINNED}:{file}")]);
        fs::write(rig.checkout.join(file), text + "\n").unwrap();
    }
    let mut rig = rig;
    rig.commit_all();
    let said = rig.said("apply");
    assert_eq!(said.status(), ("applied", 0), "{}", said.json);
    assert_eq!(said.json["edits"].as_array().unwrap().len(), 14);
    assert_eq!(rig.said("apply").status(), ("already", 0));
    let changed = git(&rig.checkout, &["diff", "--numstat"]);
    assert_eq!(changed, "1\t0\tassets/warpauv.py\n14\t14\twarpauv_env.py");
}
