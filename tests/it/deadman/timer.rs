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
    a_look_at_an_overdue_one_stops_the_pod(&fixture, second).await;
}

/// The fuse that is lost was due long ago; one look has it fire.
async fn a_look_at_an_overdue_one_stops_the_pod(fixture: &Fixture, mut lost: serde_json::Value) {
    lost["fire_at"] = serde_json::json!("2026-01-01T00:00:00Z");
    std::fs::write(fixture.path("logs/deadman.pid"), lost.to_string()).unwrap();
    assert_eq!(deadman(fixture, &["tick"]).code, 0);
    assert_eq!(ended(fixture).await["outcome"], "stopped");
    assert_eq!(fixture.status().await, "EXITED");
}

/// A config that was edited since stands in nobody's way: a lost fuse is taken up for the pod that it was armed
/// for, not for whatever the vehicle's is called by now.
#[tokio::test(flavor = "multi_thread")]
async fn a_lost_fuse_is_taken_up_for_the_pod_that_it_was_armed_for() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    assert_eq!(arm(&fixture, "2", &[]).code, 0);
    let overdue = record(&fixture);
    kill(&fixture, pid_of(&overdue)).await;
    let config = std::fs::read_to_string(fixture.config_file()).unwrap();
    let name = overdue["pod_name"].as_str().unwrap().to_owned();
    let edited = config.replace(&format!("pod_name: {name}"), "pod_name: renamed-since");
    assert_ne!(edited, config);
    std::fs::write(fixture.config_file(), edited).unwrap();
    a_look_at_an_overdue_one_stops_the_pod(&fixture, overdue).await;
}

/// Real and local are never mixed up: a fuse that was armed over a real pod is not taken up, and so written
/// off, by a look whose config is for the local cloud by now.
#[tokio::test(flavor = "multi_thread")]
async fn a_lost_fuse_of_another_cloud_is_said_and_not_taken_up() {
    let fixture = Fixture::new();
    let _ = fixture.tether().await;
    assert_eq!(arm(&fixture, "2", &[]).code, 0);
    let mut real = record(&fixture);
    kill(&fixture, pid_of(&real)).await;
    real["cloud"] = serde_json::json!("runpod");
    std::fs::write(fixture.path("logs/deadman.pid"), real.to_string()).unwrap();
    let looked = deadman(&fixture, &["tick"]);
    assert!(looked.code == 1 && looked.stderr.contains("THE POD MAY BILL"), "{looked:?}");
    assert_eq!(record(&fixture), real);
    let again = arm(&fixture, "2", &[]);
    assert!(again.code == 1 && again.stderr.contains("runpod cloud"), "{again:?}");
    assert_eq!(word(&status(&fixture)), ("LOST".into(), 1));
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
