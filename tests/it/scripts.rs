//! run.sh and supervise.sh, in a copy of the repository whose cargo and binary are fakes.

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use super::sshd::wait_until;

/// What the scripts may use, besides what a test gives them.
const TOOLS: &[&str] = &[
    "bash", "sh", "env", "cat", "chmod", "dirname", "find", "mkdir", "mv", "readlink", "rm", "sed",
    "sleep", "touch",
];

/// Noisy on purpose, and it would eat an MCP client's first words if it were given them.
const CARGO: &str = r#"#!/bin/sh
echo "   Compiling everything"
cat
echo "$PWD|$*" >>"$FAKE/cargo.log"
[ ! -f "$FAKE/cargo.fails" ] || exit 101
mkdir -p target/release
cat >target/release/podtether <<'END'
#!/bin/sh
if [ "$1" = wait ] || [ "$2" = wait ]; then
  trap : HUP INT
  trap 'echo stopped; exit 6' TERM
  echo "ready $$"
  # A signal to the group ends the sleep, too, and must not end the wait.
  while :; do sleep 0.05 || :; done
fi
echo "pid $$"
for word in "$@"; do echo "[$word]"; done
cat
exit "${FAKE_CODE:-0}"
END
chmod +x target/release/podtether
"#;

/// Holds until the process that it was told of is gone, as the real one does.
const CAFFEINATE: &str = r#"#!/bin/sh
echo "caffeinate is up"
cat
echo "$*" >"$FAKE/awake.log.new"
mv "$FAKE/awake.log.new" "$FAKE/awake.log"
while kill -0 "$3" 2>/dev/null; do sleep 0.05 || exit; done
: >"$FAKE/awake.over"
"#;

/// The first call is the question whether it works at all.
const INHIBIT: &str = r#"#!/bin/sh
[ ! -f "$FAKE/inhibit.fails" ] || { echo "Failed to inhibit"; exit 1; }
what=$1
shift 3
[ "$1" != true ] || exit 0
echo "inhibited"
echo "$what|$5" >"$FAKE/awake.log.new"
mv "$FAKE/awake.log.new" "$FAKE/awake.log"
"$@"
: >"$FAKE/awake.over"
"#;

/// Written by a process of its own: a file that this process holds open for writing, if only in a
/// fork of another test's thread, can not be run.
fn place(path: &Path, text: &str) {
    let mut child = Command::new("sh")
        .args(["-c", r#"cat >"$0" && chmod 755 "$0""#])
        .arg(path)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
}

struct Clone {
    // Kept for its Drop.
    _folder: tempfile::TempDir,
    outside: PathBuf,
    root: PathBuf,
    path: PathBuf,
}

impl Clone {
    fn new(fakes: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let outside = folder.path().canonicalize().unwrap();
        let root = outside.join("a clone, elsewhere").join("pod tether");
        let path = outside.join("bin");
        for made in [&root.join("src"), &root.join("remote"), &path] {
            fs::create_dir_all(made).unwrap();
        }
        for script in ["run.sh", "supervise.sh", "watch.sh"] {
            let real = Path::new(env!("CARGO_MANIFEST_DIR")).join(script);
            place(&root.join(script), &fs::read_to_string(real).unwrap());
        }
        for file in ["Cargo.toml", "Cargo.lock", "rust-toolchain.toml", "src/lib.rs", "src/old.rs"]
        {
            fs::write(root.join(file), "rust-version = \"1.95\"\n").unwrap();
        }
        for tool in TOOLS {
            let real = std::env::split_paths(&std::env::var_os("PATH").unwrap())
                .map(|folder| folder.join(tool))
                .find(|file| file.exists())
                .unwrap_or_else(|| panic!("no {tool} on PATH"));
            symlink(real, path.join(tool)).unwrap();
        }
        // Nobody's root: nothing may be installed from here.
        place(&path.join("id"), "#!/bin/sh\necho 1000\n");
        let clone = Self { _folder: folder, outside, root, path };
        for (name, text) in [("cc", "#!/bin/sh\n")].iter().chain(fakes) {
            place(&clone.path.join(name), text);
        }
        clone
    }

    /// With everything that a build and a pull need.
    fn whole() -> Self {
        Self::new(&[("cargo", CARGO), ("rsync", "#!/bin/sh\n")])
    }

    fn command(&self, script: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(script);
        command
            .args(arguments)
            .current_dir(&self.outside)
            .env_clear()
            .env("PATH", &self.path)
            .env("HOME", &self.outside)
            .env("FAKE", &self.outside)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        Ran::of(self.command(&self.root.join("run.sh"), arguments))
    }

    fn log(&self, name: &str) -> String {
        fs::read_to_string(self.outside.join(name)).unwrap_or_default()
    }

    fn builds(&self) -> usize {
        self.log("cargo.log").lines().count()
    }
}

/// A run that was given `hello` on stdin.
struct Ran {
    pid: u32,
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Ran {
    fn of(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let pid = child.id();
        // Who is over before it reads does not get it, and that is no failure.
        let _ = child.stdin.take().unwrap().write_all(b"hello\n");
        let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
        Self {
            pid,
            code: status.code(),
            stdout: String::from_utf8(stdout).unwrap(),
            stderr: String::from_utf8(stderr).unwrap(),
        }
    }

    /// What the fake binary prints for these words when it is our own process.
    fn assert_binary_got(&self, words: &[&str]) {
        let words: String = words.iter().map(|word| format!("[{word}]\n")).collect();
        assert_eq!(self.stdout, format!("pid {}\n{words}hello\n", self.pid), "{}", self.stderr);
    }
}

/// C10: the client's own child is the server, stdin is the server's, stdout has one owner.
#[test]
fn nothing_comes_before_the_binary_and_nothing_stays_around_it() {
    let clone = Clone::whole();
    let first = clone.run(&[]);
    first.assert_binary_got(&["mcp"]);
    assert!(first.stderr.contains("Compiling everything"), "{}", first.stderr);
    let second = clone.run(&["mcp", "--config", "x"]);
    second.assert_binary_got(&["mcp", "--config", "x"]);
    assert_eq!(second.stderr, "");
}

#[test]
fn it_builds_when_something_changed_and_only_then() {
    let clone = Clone::whole();
    clone.run(&["audit"]);
    clone.run(&["audit"]);
    assert_eq!(clone.builds(), 1);
    let mut builds = 1;
    let changes: [&dyn Fn(); 4] = [
        &|| fs::write(clone.root.join("src/lib.rs"), "changed").unwrap(),
        &|| fs::write(clone.root.join("remote/new.sh"), "new").unwrap(),
        &|| fs::write(clone.root.join("Cargo.lock"), "changed").unwrap(),
        &|| fs::remove_file(clone.root.join("src/old.rs")).unwrap(),
    ];
    for change in changes {
        change();
        clone.run(&["audit"]).assert_binary_got(&["audit"]);
        clone.run(&["audit"]).assert_binary_got(&["audit"]);
        builds += 1;
        assert_eq!(clone.builds(), builds, "{}", clone.log("cargo.log"));
    }
    let log = clone.log("cargo.log");
    assert!(log.lines().all(|line| line.starts_with(clone.root.to_str().unwrap())), "{log}");
    assert!(log.lines().all(|line| line.contains("--release --locked")), "{log}");
}

#[test]
fn it_finds_itself_through_links_and_in_a_path_with_spaces() {
    let clone = Clone::whole();
    fs::create_dir(clone.outside.join("links")).unwrap();
    let link = clone.outside.join("links/a link");
    symlink("../a clone, elsewhere/pod tether/run.sh", &link).unwrap();
    let second = clone.path.join("podtether");
    symlink(&link, &second).unwrap();
    for script in [&link, &second, &PathBuf::from("a clone, elsewhere/pod tether/run.sh")] {
        let mut command = clone.command(script, &["audit"]);
        // With this set, cd prints where it went.
        command.env("CDPATH", &clone.outside);
        Ran::of(command).assert_binary_got(&["audit"]);
    }
    // Every time it was the same folder, or it would have been built there, too.
    assert_eq!(clone.builds(), 1, "{}", clone.log("cargo.log"));
}

#[test]
fn words_and_exit_codes_pass_through() {
    let clone = Clone::whole();
    let words = ["report", "", "two words", "*", "--", "$HOME", "-n"];
    for code in [0, 2, 6] {
        let mut command = clone.command(&clone.root.join("run.sh"), &words);
        command.env("FAKE_CODE", code.to_string());
        let ran = Ran::of(command);
        ran.assert_binary_got(&words);
        assert_eq!(ran.code, Some(code));
    }
}

#[test]
fn the_demo_lives_below_target_unless_told_otherwise() {
    let clone = Clone::whole();
    let below = clone.root.join("target/demo");
    let ran = clone.run(&["demo", "--json"]);
    ran.assert_binary_got(&["demo", "--dir", below.to_str().unwrap(), "--json"]);
    clone.run(&["demo", "--dir", "here"]).assert_binary_got(&["demo", "--dir", "here"]);
    clone.run(&["demo", "--dir=here"]).assert_binary_got(&["demo", "--dir=here"]);
}

/// run.sh looks there too, whatever PATH says.
fn cargo_is_everywhere() -> bool {
    let found = ["/opt/homebrew/bin/cargo", "/usr/local/bin/cargo"]
        .iter()
        .any(|file| Path::new(file).exists());
    if found {
        println!("SKIPPED: a missing cargo, since there is one where run.sh always looks");
    }
    found
}

#[test]
fn without_cargo_one_line_says_what_to_run() {
    if cargo_is_everywhere() {
        return;
    }
    let clone = Clone::new(&[("rsync", "#!/bin/sh\n")]);
    for arguments in [&[][..], &["demo"], &["test"], &["supervise"]] {
        let ran = clone.run(arguments);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(127), ""), "{}", ran.stderr);
        assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
        assert!(ran.stderr.contains("sh.rustup.rs"), "{}", ran.stderr);
    }
}

#[test]
fn without_cargo_an_earlier_build_goes_on_working() {
    if cargo_is_everywhere() {
        return;
    }
    let clone = Clone::whole();
    clone.run(&["audit"]);
    fs::remove_file(clone.path.join("cargo")).unwrap();
    fs::write(clone.root.join("src/lib.rs"), "pulled").unwrap();
    let ran = clone.run(&["audit"]);
    ran.assert_binary_got(&["audit"]);
    assert!(ran.stderr.contains("earlier build"), "{}", ran.stderr);
}

#[test]
fn cargo_is_found_where_rustup_puts_it() {
    let clone = Clone::new(&[("rsync", "#!/bin/sh\n")]);
    fs::create_dir_all(clone.outside.join(".cargo/bin")).unwrap();
    place(&clone.outside.join(".cargo/bin/cargo"), CARGO);
    clone.run(&["audit"]).assert_binary_got(&["audit"]);
}

#[test]
fn without_rsync_one_line_says_so_and_the_binary_runs() {
    let clone = Clone::new(&[("cargo", CARGO)]);
    clone.run(&["audit"]);
    for arguments in [&["audit"][..], &["demo", "--dir", "x"]] {
        let ran = clone.run(arguments);
        ran.assert_binary_got(arguments);
        assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
        assert!(ran.stderr.contains("brew install rsync"), "{}", ran.stderr);
    }
}

/// Sources that do not compile must never stand between a person and a stop.
#[test]
fn a_failed_build_ends_everything_but_a_stop() {
    let clone = Clone::whole();
    fs::write(clone.outside.join("cargo.fails"), "").unwrap();
    let ran = clone.run(&["stop", "--vehicle", "v"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(101), ""), "{}", ran.stderr);

    fs::remove_file(clone.outside.join("cargo.fails")).unwrap();
    clone.run(&["audit"]);
    fs::write(clone.outside.join("cargo.fails"), "").unwrap();
    fs::write(clone.root.join("src/lib.rs"), "broken").unwrap();
    let ran = clone.run(&["mcp"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(101), ""), "{}", ran.stderr);
    clone.run(&["stop", "--vehicle", "v"]).assert_binary_got(&["stop", "--vehicle", "v"]);

    // And it is tried again, since nothing was built.
    fs::remove_file(clone.outside.join("cargo.fails")).unwrap();
    let builds = clone.builds();
    clone.run(&["mcp"]).assert_binary_got(&["mcp"]);
    assert_eq!(clone.builds(), builds + 1);
}

/// A process and what it started, ended with the test however that ends.
struct Group(Child);

impl Drop for Group {
    fn drop(&mut self) {
        let _ = kill_process_group(Pid::from_child(&self.0), Signal::KILL);
        let _ = self.0.wait();
    }
}

/// supervise.sh with a binary that waits for its end. What the holder of sleep was told is returned.
fn held_awake_until_the_binarys_end(holder: &str, text: &str) -> (u32, String) {
    let clone = Clone::whole();
    place(&clone.path.join(holder), text);
    clone.run(&["audit"]);
    let mut command = clone.command(&clone.root.join("supervise.sh"), &["wait", "a word"]);
    let mut group = Group(command.process_group(0).spawn().unwrap());
    let child = &mut group.0;
    let pid = Pid::from_child(child);
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    assert_eq!(line, format!("ready {}\n", child.id()));
    wait_until(holder, || !clone.log("awake.log").is_empty());

    // What a closed terminal and a Ctrl-C send: the binary goes on until the pod is stopped, and so
    // must the holder, which tells of its end only when it comes to it by itself.
    kill_process_group(pid, Signal::HUP).unwrap();
    kill_process_group(pid, Signal::INT).unwrap();
    assert!(!clone.outside.join("awake.over").exists());

    kill_process(pid, Signal::TERM).unwrap();
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).unwrap();
    assert_eq!((child.wait().unwrap().code(), rest.as_str()), (Some(6), "stopped\n"));
    wait_until("the holder's end", || clone.outside.join("awake.over").exists());
    (child.id(), clone.log("awake.log"))
}

#[test]
fn a_mac_stays_awake_until_supervise_is_over_and_signals_pass() {
    let (pid, told) = held_awake_until_the_binarys_end("caffeinate", CAFFEINATE);
    assert_eq!(told, format!("-i -w {pid}\n"));
}

#[test]
fn a_linux_laptop_stays_awake_until_supervise_is_over_and_signals_pass() {
    let (pid, told) = held_awake_until_the_binarys_end("systemd-inhibit", INHIBIT);
    assert_eq!(told, format!("--what=sleep:idle|{pid}\n"));
}

#[test]
fn where_nothing_holds_off_sleep_supervise_says_so_and_runs() {
    for fails in [false, true] {
        let clone = Clone::whole();
        if fails {
            place(&clone.path.join("systemd-inhibit"), INHIBIT);
            fs::write(clone.outside.join("inhibit.fails"), "").unwrap();
        }
        clone.run(&["audit"]);
        let arguments = ["--command", "true"];
        let ran = Ran::of(clone.command(&clone.root.join("supervise.sh"), &arguments));
        ran.assert_binary_got(&["supervise", "--command", "true"]);
        assert!(ran.stderr.contains("keep this computer awake yourself"), "{}", ran.stderr);
        assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
    }
}

#[test]
fn watch_sh_is_the_same_around_watch() {
    let clone = Clone::whole();
    clone.run(&["audit"]);
    let ran = Ran::of(clone.command(&clone.root.join("watch.sh"), &["--job-id", "a b"]));
    ran.assert_binary_got(&["watch", "--job-id", "a b"]);
}

#[test]
fn the_scripts_can_be_run_as_they_lie() {
    for script in ["run.sh", "supervise.sh", "watch.sh", ".ci/run", ".ci/test.sh"] {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(script);
        let mode = fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o111, 0o111, "{script}");
    }
}
