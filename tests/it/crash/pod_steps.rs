//! Watches the commands that reach a pod, and kills the program at one of them. A stand-in for the
//! pod's bash does it: every command of podtether's is `bash -c SCRIPT NAME ARGUMENTS`.

use super::cell::When;
use podtether::domain::join_quoted;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// The files by which the stand-in is told what to do.
pub struct PodSteps {
    folder: PathBuf,
}

impl PodSteps {
    pub fn in_folder(folder: PathBuf) -> Self {
        fs::create_dir(&folder).unwrap();
        let steps = Self { folder };
        steps.begin(None);
        steps
    }

    /// Puts the stand-in before the real bash of a pod.
    pub fn watch(&self, pod: &Path) {
        let folder = join_quoted([self.folder.to_str().unwrap()]);
        let script = format!(
            r#"#!/bin/bash
folder={folder}
if [ "$1" = -c ] && [[ ${{3-}} == *.sh ]]; then
  # For a job that goes on until its end is waited for.
  [ "$3" != await_exit.sh ] || : >"$4/../../held"
  printf '%s\n' "$3" >>"$folder/log"
  times=$(grep -cxF -- "$3" "$folder/log")
  read -r key when <"$folder/plan"
  if [ "$3#$times" = "$key" ]; then
    # A stream is a talk of two: without its half the program waits, and so does the pod.
    if [ "$when" = After ] && [ "$3" = clean_stream.sh ]; then
      /bin/bash "$@"
    elif [ "$when" = After ]; then
      /bin/bash "$@" >/dev/null
    fi
    until [ -s "$folder/victim" ]; do sleep 0.01; done
    kill -KILL "$(cat "$folder/victim")"
    exit 1
  fi
fi
exec /bin/bash "$@"
"#
        );
        let path = pod.join("bin/bash");
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Forgets what came so far and kills at `plan` from now on.
    pub fn begin(&self, plan: Option<(&str, When)>) {
        let (key, when) = plan.unwrap_or(("nothing", When::Before));
        fs::write(self.folder.join("log"), "").unwrap();
        fs::write(self.folder.join("victim"), "").unwrap();
        fs::write(self.folder.join("plan"), format!("{key} {when:?}\n")).unwrap();
    }

    pub fn aim_at(&self, victim: u32) {
        fs::write(self.folder.join("victim"), victim.to_string()).unwrap();
    }

    /// The commands that came, as `SCRIPT#N`, and from now on nobody is killed.
    pub fn end(&self) -> Vec<String> {
        let log = fs::read_to_string(self.folder.join("log")).unwrap();
        self.begin(None);
        let names: Vec<&str> = log.lines().collect();
        let times = |i: usize| names[..=i].iter().filter(|name| **name == names[i]).count();
        (0..names.len()).map(|i| format!("{}#{}", names[i], times(i))).collect()
    }
}
