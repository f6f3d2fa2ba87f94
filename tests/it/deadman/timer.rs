//! The fuse under the system's scheduler: what its files say, and that one look takes up a lost fuse.

use super::{arm, deadman, ended, kill, pid_of, record, status, word};
use crate::flows::fixture::Fixture;
use std::process::Command;

/// A fuse whose process died with the machine is taken up by the next look: at once when it is
/// overdue, else for its old time.
#[tokio::test(flavor = "multi_thread")]
async fn one_look_takes_up_a_fuse_whose_process_is_gone() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    assert_eq!(arm(&fixture, "2", &[]).code, 0);
    assert_eq!(deadman(&fixture, &["tick"]).code, 0);
    let first = record(&fixture);
    kill(&fixture, pid_of(&first)).await;
    let looked = deadman(&fixture, &["tick"]);
    assert!(looked.code == 0 && looked.stdout.contains("took over"), "{looked:?}");
    let second = record(&fixture);
    assert_ne!(second["pid"], first["pid"]);
    assert_eq!(word(&status(&fixture)), ("armed".into(), 0));
    assert!(status(&fixture).json["vehicles"][0]["timer_tick"].is_string(), "C05");
    kill(&fixture, pid_of(&second)).await;
    let mut overdue = second.clone();
    overdue["fire_at"] = serde_json::json!("2026-01-01T00:00:00Z");
    std::fs::write(fixture.path("logs/deadman.pid"), overdue.to_string()).unwrap();
    assert_eq!(deadman(&fixture, &["tick"]).code, 0);
    assert_eq!(ended(&fixture).await["outcome"], "stopped");
    assert_eq!(fixture.status().await, "EXITED");
}

/// The files go below HOME, are read by the system's own checker where there is one, and go again.
#[test]
fn the_files_are_written_below_home_and_taken_away_again() {
    let fixture = Fixture::new();
    let installed = deadman(&fixture, &["install"]);
    assert_eq!(installed.code, 0, "{installed:?}");
    assert!(installed.stderr.contains("run once") && installed.stderr.contains("keychain"));
    let paths: Vec<&str> = installed.stdout.lines().collect();
    let home = fixture.path("");
    assert!(!paths.is_empty() && paths.iter().all(|path| path.starts_with(home.to_str().unwrap())));
    for path in &paths {
        let text = std::fs::read_to_string(path).unwrap();
        assert!(!text.is_empty());
        let checker = match path.rsplit_once('.').unwrap().1 {
            "plist" => Command::new("plutil").arg("-lint").arg(path).output(),
            _ => Command::new("systemd-analyze")
                .args(["verify", "--user", "--man=no"])
                .arg(path)
                .output(),
        };
        match checker {
            Ok(checked) => {
                let words = String::from_utf8_lossy(&checked.stderr).into_owned();
                let name = path.rsplit_once('/').unwrap().1;
                let about_us: Vec<&str> =
                    words.lines().filter(|line| line.contains(name)).collect();
                assert!(about_us.is_empty(), "{about_us:?}\n{text}");
            }
            Err(error) => println!("skipped: nothing here checks {path}: {error}"),
        }
    }
    // What switching it on leaves goes with it, and what is to be run works without the files.
    let timer = paths.iter().find(|path| path.ends_with(".timer")).map(std::path::Path::new);
    let link = timer.map(|timer| {
        let wants = timer.parent().unwrap().join("timers.target.wants");
        std::fs::create_dir(&wants).unwrap();
        let link = wants.join(timer.file_name().unwrap());
        std::os::unix::fs::symlink(timer, &link).unwrap();
        link
    });
    let removed = deadman(&fixture, &["uninstall"]);
    assert_eq!(removed.code, 0, "{removed:?}");
    assert!(link.is_none_or(|link| link.symlink_metadata().is_err()));
    assert!(removed.stderr.contains("run once") && !removed.stderr.contains("disable"));
    assert!(paths.iter().all(|path| !std::path::Path::new(path).exists()));
}
