//! What a verb adds to a job: files that travel with it, its environment, a ceiling of its own.

use crate::config::PodScript;
use crate::digest::sha256_hex;
use crate::domain::{Ceiling, Template, join_quoted};
use crate::error::{Failure, FailureKind};
use crate::plan::{JobFile, files_dir};
use std::collections::BTreeMap;
use std::path::Path;

/// A script of the config as a job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobParts {
    /// Placed in the job's folder before it starts; the script is the first.
    pub(super) files: Vec<JobFile>,
    /// The command as words.
    pub(super) words: Vec<Template>,
    /// What stands for their placeholders, apart from `{script}` and `{files}`.
    pub(super) places: BTreeMap<&'static str, String>,
    /// Its environment.
    pub(super) env: BTreeMap<String, String>,
    /// The ceiling when none is asked for; timeouts.job_sec when `None`.
    pub(super) ceiling: Option<Ceiling>,
}

impl JobParts {
    /// The command line of a job in that folder.
    ///
    /// # Errors
    /// A placeholder that nothing stands for.
    pub(super) fn command(&self, job_dir: &str) -> Result<String, Failure> {
        let files = files_dir(job_dir);
        let script = self.files.first().map(|file| format!("{files}/{}", file.name));
        let value = |name: &str| match name {
            "files" => Some(files.clone()),
            "script" => script.clone(),
            _ => self.places.get(name).cloned(),
        };
        let words: Result<Vec<String>, String> =
            self.words.iter().map(|word| word.fill(value)).collect();
        let words = words.map_err(|name| {
            let message = format!("nothing stands for {{{name}}} in a command of the config");
            Failure::new(FailureKind::Config, message, "mend the config; nothing was changed")
        })?;
        Ok(join_quoted(words.iter().map(String::as_str)))
    }

    /// The files with their hashes, for the job's record.
    pub(super) fn recorded(&self) -> serde_json::Value {
        let hash = |file: &JobFile| (file.name.clone(), sha256_hex(&file.bytes).into());
        serde_json::Value::Object(self.files.iter().map(hash).collect())
    }

    /// What it comes to, apart from where: equal texts are the same script, files and environment.
    pub(super) fn essence(&self) -> String {
        let words: Vec<&str> = self.words.iter().map(Template::source).collect();
        serde_json::json!({
            "files": self.recorded(), "words": words, "places": self.places, "env": self.env,
        })
        .to_string()
    }

    /// The job of a script of the config: its files are read now, and travel with it. `places` are
    /// what stands for the other placeholders.
    ///
    /// # Errors
    /// When a file cannot be read, or is too large to travel.
    pub(super) fn of_script(
        run: &PodScript,
        places: impl IntoIterator<Item = (&'static str, String)>,
    ) -> Result<Self, Failure> {
        let mut files = vec![job_file(&run.script)?];
        for path in &run.files {
            let file = job_file(path)?;
            if files.iter().any(|other| other.name == file.name) {
                let message = format!("two files of the config are named {}", file.name);
                return Err(Failure::new(FailureKind::Config, message, RENAME));
            }
            files.push(file);
        }
        let (words, places) = (run.command.clone(), places.into_iter().collect());
        Ok(Self { words, places, files, ..Self::default() })
    }
}

const RENAME: &str = "rename one of them: both come to lie in one folder; nothing was changed";

/// The most that one file which travels with a job may have, in bytes. It goes over SSH within the
/// time for a small file.
const FILE_MAX: u64 = 4 << 20;

/// A file of this machine, whole.
///
/// # Errors
/// When it cannot be read or is too large. Nothing was changed.
pub(super) fn job_file(path: &Path) -> Result<JobFile, Failure> {
    use std::io::Read as _;
    let failure = |reason: &dyn std::fmt::Display, hint: &str| {
        Failure::new(FailureKind::Config, format!("{}: {reason}", path.display()), hint)
    };
    let name = path.file_name().and_then(|name| name.to_str());
    let name = name.filter(|name| !name.chars().any(char::is_control)).ok_or_else(|| {
        failure(&"its name is no plain text", "rename the file; nothing was changed")
    })?;
    let mut bytes = Vec::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(FILE_MAX + 1).read_to_end(&mut bytes))
        .map_err(|error| {
            failure(&error, "mend the path in the config, or the file; nothing was changed")
        })?;
    if bytes.len() as u64 > FILE_MAX {
        return Err(failure(
            &"it is larger than 4 MiB",
            "put it on the volume and name its place there; nothing was changed",
        ));
    }
    Ok(JobFile { name: name.to_owned(), bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_of_the_config_becomes_words_and_files_and_no_shell_text() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("it's a script.sh"), "echo\n").unwrap();
        std::fs::write(at("data.yaml"), "a: 1\n").unwrap();
        let run = PodScript {
            script: at("it's a script.sh"),
            files: vec![at("data.yaml")],
            command: ["bash", "{script}", "--data={files}/data.yaml", "{mount}/x", "$HOME"]
                .map(|word| Template::parse(word).unwrap())
                .to_vec(),
        };
        let parts = JobParts::of_script(&run, [("mount", "/work {files}".to_owned())]).unwrap();
        let names: Vec<&str> = parts.files.iter().map(|file| file.name.as_str()).collect();
        assert_eq!(names, ["it's a script.sh", "data.yaml"]);
        assert_eq!(
            parts.command("/w/jobs/1").unwrap(),
            "bash '/w/jobs/1/files/it'\\''s a script.sh' --data=/w/jobs/1/files/data.yaml '/work {files}/x' '$HOME'"
        );
        assert_eq!(parts.recorded()["data.yaml"], sha256_hex(b"a: 1\n"));
    }

    #[test]
    fn a_file_that_is_missing_too_large_or_there_twice_is_told_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.sh");
        let run = |files| PodScript { script: path.clone(), files, command: Vec::new() };
        let failure = JobParts::of_script(&run(Vec::new()), []).unwrap_err();
        assert!(failure.kind == FailureKind::Config && failure.message.contains("x.sh"));
        std::fs::write(&path, vec![b' '; (4 << 20) + 1]).unwrap();
        let failure = JobParts::of_script(&run(Vec::new()), []).unwrap_err();
        assert!(failure.message.contains("larger"), "{failure}");
        std::fs::write(&path, "").unwrap();
        let failure = JobParts::of_script(&run(vec![path.clone()]), []).unwrap_err();
        assert!(failure.message.contains("two files"), "{failure}");
    }
}
