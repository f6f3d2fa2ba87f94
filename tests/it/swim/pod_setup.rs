//! examples/learning-to-swim/pod_setup.sh with stand-ins for what it calls: every step's failure, a
//! repeat, and a pod that came back from a stop with an empty container disk. git and python are real.

use super::{git, of_repository, place};
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use tempfile::TempDir;

/// What a pod's image has, apart from what a test gives it.
const TOOLS: &[&str] = &[
    "bash", "sh", "awk", "cat", "chmod", "cp", "cut", "date", "df", "dirname", "env", "find",
    "grep", "head", "ln", "mkdir", "mv", "rm", "sleep", "sort", "stat", "tail", "tr", "wc", "seq",
    "touch",
];

const NVIDIA_SMI: &str = "#!/bin/sh\ncat \"$FAKE/driver\" 2>/dev/null || exit 9\n";
const LDCONFIG: &str = "#!/bin/sh\ncat \"$DISK/libraries\" 2>/dev/null\n";

/// Installs onto the container disk; ends with 0 whatever became of it.
const APT_GET: &str = r#"#!/bin/sh
echo "$*" >>"$FAKE/apt.log"
[ "$DEBIAN_FRONTEND" = noninteractive ] || { echo "a question nobody answers"; exit 1; }
[ "$1" = install ] || exit 0
cp "$FAKE"/programs/* "$DISK/bin/"
for one in SM.so.6 GLU.so.1 Xt.so.6 Xext.so.6 GL.so.1 EGL.so.1 vulkan.so.1 gomp.so.1; do
  [ -e "$FAKE/apt.lies" ] && [ "$one" = vulkan.so.1 ] || echo "lib$one"
done >"$DISK/libraries"
exit 0
"#;

/// Knows one address; goes on where a part ends; `cuts` ends a download half-way, once.
const CURL: &str = r#"#!/bin/bash
echo "$*" >>"$FAKE/curl.log"
[ ! -e "$FAKE/url.gone" ] || { echo "curl: (22) The requested URL returned error: 404" >&2; exit 22; }
size=$(wc -c <"$FAKE/archive")
case $1 in *I*) printf 'HTTP/2 200\r\nContent-Length: %s\r\n\r\n' "$((size))"; exit 0 ;; esac
out='' on=0
while [ $# -gt 0 ]; do
  case $1 in -o) out=$2 ;; -C) on=1 ;; esac
  shift
done
have=0
[ $on = 0 ] || [ ! -e "$out" ] || have=$(wc -c <"$out")
echo "from $((have))" >>"$FAKE/curl.from"
if [ -e "$FAKE/curl.cuts" ]; then
  rm "$FAKE/curl.cuts"
  head -c $((size / 2)) "$FAKE/archive" | tail -c +$((have + 1)) >>"$out"
  echo "curl: (56) the connection was reset" >&2
  exit 56
fi
tail -c +$((have + 1)) "$FAKE/archive" >>"$out"
"#;

/// Unpacks the one archive, and nothing that differs from it.
const UNZIP: &str = r#"#!/bin/bash
[ "$(cat "$3")" = "$(cat "$FAKE/archive")" ] || { echo "End-of-central-directory signature not found"; exit 9; }
mkdir -p "$5/kit/python/bin" "$5/exts/omni.one"
touch "$5/exts/omni.one/extension.toml"
printf '#!/bin/sh\nexit 0\n' >"$5/python.sh"
printf '#!/bin/sh\necho "$*" >>"$FAKE/pip.log"\n' >"$5/kit/python/bin/python3"
chmod 755 "$5/python.sh" "$5/kit/python/bin/python3"
"#;

/// Stands in for Isaac Lab: its python is the real one, with the modules that were installed. Ends
/// with 0 although a package failed, as the real one does.
const ISAACLAB: &str = r#"#!/bin/bash
site=$FAKE/../mount/isaacsim/site
case $1 in
  --install)
    grep -q 'setuptools<82' "$PIP_CONSTRAINT" || exit 3
    mkdir -p "$site"
    for one in torch gymnasium rsl_rl flatdict isaaclab isaaclab_tasks isaaclab_assets isaaclab_rl; do
      [ -e "$FAKE/install.lies" ] && [ $one = flatdict ] || touch "$site/$one.py"
    done
    echo "installed everything"
    ;;
  -p) shift; PYTHONPATH=$site exec "$PYTHON" "$@" ;;
esac
"#;

struct Pod {
    folder: TempDir,
    commit: String,
}

impl Pod {
    fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("a pod's ").tempdir().unwrap();
        let at = |name: &str| folder.path().canonicalize().unwrap().join(name);
        for made in ["mount", "disk/bin", "fake/programs", "image"] {
            fs::create_dir_all(at(made)).unwrap();
        }
        for tool in TOOLS {
            std::os::unix::fs::symlink(found(tool), at("image").join(tool)).unwrap();
        }
        for (name, text) in [
            ("nvidia-smi", NVIDIA_SMI),
            ("ldconfig", LDCONFIG),
            ("apt-get", APT_GET),
            ("curl", CURL),
        ] {
            place(&at("image").join(name), text);
        }
        for name in ["cmake", "rsync", "g++"] {
            place(&at("fake/programs").join(name), "#!/bin/sh\n");
        }
        place(&at("fake/programs/unzip"), UNZIP);
        place(
            &at("fake/programs/git"),
            &format!("#!/bin/sh\nexec '{}' \"$@\"\n", found("git").display()),
        );
        fs::write(at("fake/driver"), "550.127.05\n").unwrap();
        fs::write(at("fake/archive"), "an archive of some length\n".repeat(40)).unwrap();

        let lab = at("lab");
        place(&lab.join("isaaclab.sh"), ISAACLAB);
        let direct = lab.join("source/isaaclab_tasks/isaaclab_tasks/direct");
        fs::create_dir_all(&direct).unwrap();
        fs::write(direct.join("__init__.py"), "").unwrap();
        git(&lab, &["init", "-q"]);
        git(&lab, &["add", "."]);
        git(&lab, &["commit", "-q", "-m", "lab"]);
        git(&lab, &["tag", "v2.2.0"]);
        let (checkout, commit) = super::checkout(&at("upstream"));
        assert!(checkout.is_dir());
        Self { folder, commit }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    /// Exit code and what it said.
    fn run(&self, more: &[(&str, &str)]) -> (i32, String) {
        // A job has its files in a folder of its own.
        let script = self.at("job/files/pod_setup.sh");
        place(
            &script,
            &fs::read_to_string(of_repository("examples/learning-to-swim/pod_setup.sh")).unwrap(),
        );
        let path = format!("{}:{}", self.at("disk/bin").display(), self.at("image").display());
        let output = Command::new(self.at("image/bash"))
            .arg(&script)
            .arg(self.at("mount"))
            .env_clear()
            .env("PATH", path)
            .env("HOME", self.at("disk"))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("DEBIAN_FRONTEND", "noninteractive")
            .env("FAKE", self.at("fake"))
            .env("DISK", self.at("disk"))
            .env("PYTHON", python())
            .env("NEED_GB", "0")
            .env("ISAACLAB_URL", format!("file://{}", self.at("lab").display()))
            .env("TASK_URL", format!("file://{}", self.at("upstream/isaac-auv-env").display()))
            .env("TASK_COMMIT", &self.commit)
            // A loaded machine is no sick volume.
            .env("STAT_MAX_MS", "600000")
            .env("FIND_MAX_MS", "600000")
            .envs(more.iter().copied())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.stderr.is_empty(), "{}{said}", String::from_utf8_lossy(&output.stderr));
        (output.status.code().unwrap(), said)
    }

    fn fake(&self, name: &str, text: &str) {
        fs::write(self.at("fake").join(name), text).unwrap();
    }

    fn wipe_container_disk(&self) {
        fs::remove_dir_all(self.at("disk")).unwrap();
        fs::create_dir_all(self.at("disk/bin")).unwrap();
    }
}

fn found(tool: &str) -> PathBuf {
    std::env::split_paths(&std::env::var_os("PATH").unwrap())
        .map(|folder| folder.join(tool))
        .find(|file| file.is_file())
        .unwrap_or_else(|| panic!("no {tool} on PATH"))
}

/// The interpreter itself: what is on PATH may be a wrapper that looks for it.
fn python() -> String {
    let output =
        Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// The last word of each step.
fn ends(said: &str) -> Vec<(&str, &str)> {
    said.lines()
        .filter_map(|line| line.strip_prefix("podtether-step "))
        .filter_map(|line| line.split_once(" ok "))
        .map(|(_, rest)| rest.split_once(": ").unwrap())
        .collect()
}

const STEPS: [&str; 9] =
    ["driver", "volume", "source", "packages", "isaacsim", "isaaclab", "python", "task", "verify"];

#[test]
fn a_fresh_pod_is_set_up_a_repeat_skips_all_and_a_wiped_disk_gets_its_packages_again() {
    let pod = Pod::new();
    let (code, said) = pod.run(&[]);
    assert_eq!(code, 0, "{said}");
    let names: Vec<&str> = ends(&said).iter().map(|(name, _)| *name).collect();
    assert_eq!(names, STEPS, "{said}");
    let link = pod.at("mount/IsaacLab/source/isaaclab_tasks/isaaclab_tasks/direct/isaac-auv-env");
    assert!(link.join("warpauv_env.py").is_file());
    assert!(!pod.at("mount/isaacsim.zip").exists(), "the archive goes once it is unpacked");
    assert!(
        fs::read_to_string(pod.at("job/files/logs/python.log"))
            .unwrap()
            .contains("installed everything")
    );
    // Patches and a chosen level are no reason to clone anew.
    fs::write(pod.at("mount/isaac-auv-env/warpauv_env.py"), "# patched\n").unwrap();

    let installs = || {
        let log = fs::read_to_string(pod.at("fake/apt.log")).unwrap();
        log.lines().filter(|line| line.starts_with("install ")).count()
    };
    let asked = fs::read_to_string(pod.at("fake/curl.log")).unwrap();
    assert_eq!(installs(), 1);
    for wiped in [false, true] {
        if wiped {
            pod.wipe_container_disk();
        }
        let (code, said) = pod.run(&[]);
        assert_eq!(code, 0, "{said}");
        let packages = if wiped { "installed" } else { "were there" };
        let skipped: Vec<(&str, &str)> = ends(&said)[2..7].to_vec();
        assert_eq!(
            skipped,
            [
                ("source", "not needed"),
                ("packages", packages),
                ("isaacsim", "was there"),
                ("isaaclab", "was there, at v2.2.0"),
                ("python", "were there"),
            ],
            "{said}"
        );
    }
    assert_eq!(installs(), 2);
    assert_eq!(
        fs::read_to_string(pod.at("fake/curl.log")).unwrap(),
        asked,
        "nothing was fetched again"
    );
    assert_eq!(
        fs::read_to_string(pod.at("mount/isaac-auv-env/warpauv_env.py")).unwrap(),
        "# patched\n"
    );
}

/// A step that fails says which and why, with an exit code of its own, and nothing comes after it.
fn fails(pod: &Pod, more: &[(&str, &str)], step: &str, words: &str) {
    let number = STEPS.iter().position(|name| *name == step).unwrap() + 1;
    let (code, said) = pod.run(more);
    let last = said.lines().last().unwrap();
    assert!(last.starts_with(&format!("podtether-step {number}/9 failed {step}: ")), "{said}");
    assert!(last.contains(words), "{words}: {said}");
    assert_eq!(usize::try_from(code).unwrap(), 10 + number, "{said}");
}

/// What no money should be spent on is known before anything is fetched or installed.
#[test]
fn an_old_driver_a_small_volume_and_an_address_that_is_gone_are_told_first() {
    let pod = Pod::new();
    for (driver, words) in [
        ("525.60.13\n", "driver 525.60.13 is older than 535.129.03"),
        ("535.54\n", "older"),
        ("No devices were found\n", "nvidia-smi shows no driver"),
        ("", "nvidia-smi shows no driver"),
    ] {
        pod.fake("driver", driver);
        fails(&pod, &[], "driver", words);
    }
    pod.fake("driver", "535.129.03\n");
    fails(&pod, &[("NEED_GB", "99999999")], "source", "99999999 are needed");
    pod.fake("url.gone", "");
    fails(
        &pod,
        &[],
        "source",
        "is gone or out of reach (curl: (22) The requested URL returned error: 404)",
    );
    assert!(!pod.at("fake/apt.log").exists(), "nothing was installed");
    assert!(!pod.at("mount/isaacsim.zip").exists());
    fs::remove_dir_all(pod.at("mount")).unwrap();
    fails(&pod, &[], "volume", "there is no ");
}

/// Exit codes of installers prove nothing: apt-get and isaaclab.sh --install end with 0 here.
#[test]
fn an_installer_that_lies_is_found_out_by_what_is_not_there() {
    let pod = Pod::new();
    pod.fake("apt.lies", "");
    fails(&pod, &[], "packages", "still missing after apt-get: libvulkan.so.1");
    fs::remove_file(pod.at("fake/apt.lies")).unwrap();
    pod.fake("install.lies", "");
    fails(&pod, &[], "python", "python still lacks: flatdict (No module named 'flatdict')");
    fs::remove_file(pod.at("fake/install.lies")).unwrap();
    let (code, said) = pod.run(&[]);
    assert_eq!(code, 0, "{said}");
}

/// A download that broke off goes on where it ended; an archive that is broken is not kept.
#[test]
fn a_download_goes_on_and_a_broken_archive_is_fetched_again() {
    let pod = Pod::new();
    pod.fake("curl.cuts", "");
    fails(&pod, &[], "isaacsim", "520 of 1040 bytes came (curl 56");
    let (code, said) = pod.run(&[]);
    assert_eq!(code, 0, "{said}");
    assert_eq!(fs::read_to_string(pod.at("fake/curl.from")).unwrap(), "from 0\nfrom 520\n");

    let pod = Pod::new();
    fs::write(pod.at("mount/isaacsim.zip"), "x".repeat(1040)).unwrap();
    fails(&pod, &[], "isaacsim", "did not unpack to an Isaac Sim (unzip 9");
    assert!(!pod.at("mount/isaacsim.zip").exists() && !pod.at("mount/isaacsim").exists());
    fs::write(pod.at("mount/isaacsim.zip"), "y".repeat(5000)).unwrap();
    let (code, said) = pod.run(&[]);
    assert_eq!(code, 0, "the rest of another archive is no beginning of this one: {said}");
}

/// What is at another version or there twice is named, and left as it is.
#[test]
fn another_version_or_a_second_checkout_is_named_and_left_alone() {
    let pod = Pod::new();
    let (code, said) = pod.run(&[]);
    assert_eq!(code, 0, "{said}");
    let link = pod.at("mount/IsaacLab/source/isaaclab_tasks/isaaclab_tasks/direct/isaac-auv-env");
    fs::remove_file(&link).unwrap();
    fs::create_dir(&link).unwrap();
    fails(&pod, &[], "task", "is a second checkout");
    fs::remove_dir(&link).unwrap();
    let other = "7c5ebe7f7a08acd2570b5fba328e92b7f59f6794";
    fails(&pod, &[("TASK_COMMIT", other)], "task", "is not at 7c5ebe7");
    fails(&pod, &[("ISAACLAB_REF", "v9")], "isaaclab", "is not at v9");
    assert!(pod.at("mount/isaac-auv-env/warpauv_env.py").is_file());
}

/// A boot of Isaac that hangs is the volume: one that answers too slowly is told by its numbers.
#[test]
fn a_volume_that_answers_too_slowly_is_told_by_its_numbers() {
    let pod = Pod::new();
    assert_eq!(pod.run(&[]).0, 0);
    fails(&pod, &[("STAT_MAX_MS", "-1")], "volume", "ms, and a healthy volume needs less than -1");
    fails(&pod, &[("FIND_MAX_MS", "-1")], "volume", "listing ");
    fs::remove_file(pod.at("mount/isaacsim/exts/omni.one/extension.toml")).unwrap();
    fails(&pod, &[], "volume", "has no extension.toml");
}
