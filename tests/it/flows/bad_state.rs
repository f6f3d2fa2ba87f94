//! A state folder that is not as it should be: what spends is refused in words, and the pod can be
//! stopped all the same.

use super::fixture::{Fixture, POD, QUICK, VEHICLE, ensure};
use podtether::apply::Settings;
use podtether::error::{FailureKind, StillBilling};
use podtether::ledger::{Action, Event, Ledger};
use podtether::ops::{EnsureStatus, StopStatus, Tether};
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Nothing is started, the reason is told, and a stop works.
async fn starts_nothing_and_stops(fixture: &Fixture, tether: &Tether, reason: &str) {
    let before = fixture.changes().len();
    let failure = tether.ensure_pod(&ensure(0)).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Config, "{failure:?}");
    assert!(failure.message.contains(reason), "{failure:?}");
    assert!(failure.hint.contains("stop_pod works"), "{failure:?}");
    assert_eq!(fixture.changes().len(), before);
    assert_eq!(tether.stop_pod(VEHICLE).await.unwrap().status, StopStatus::Stopped);
    assert_eq!(fixture.status().await, "EXITED");
}

/// B05: a link to the project is the project. With a journal of its own for each path, the lock would
/// keep nobody apart and an open create would be overlooked.
#[tokio::test(flavor = "multi_thread")]
async fn a_project_has_one_journal_by_whatever_path_its_config_is_named() {
    let fixture = Fixture::new();
    let link = fixture.path("another name");
    std::os::unix::fs::symlink(fixture.path(""), &link).unwrap();
    let action = Action::CreatePod { name: POD.into(), nonce: "never sent".into() };
    let make = |id| Event::Intend { id, vehicle: VEHICLE.into(), action, micros_per_hour: None };
    fixture.ledger().intend(make).unwrap();
    let roundabout = fixture.path("cloud/../podtether.yaml");
    for config in [link.join("podtether.yaml"), roundabout] {
        let tether = fixture.tether_of(&config).await;
        let failure = tether.ensure_pod(&ensure(0)).await.unwrap_err();
        assert_eq!(failure.kind, FailureKind::Refused, "{failure:?}");
        assert_eq!(fixture.changes(), []);
    }
}

/// A file system of 64 KiB, which is full of something else.
struct FullDisk(PathBuf);

impl FullDisk {
    /// `None` where nothing may be mounted.
    fn over(folder: &Path) -> Option<Self> {
        fs::create_dir_all(folder).unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=64k", "tmpfs"])
            .arg(folder)
            .output();
        mounted.is_ok_and(|output| output.status.success()).then(|| Self(folder.to_owned()))
    }

    /// Fills the disk, and the journal to the end of the last page that it has on it.
    fn fill(&self, ledger: &Ledger) {
        const PAGE: usize = 4096;
        let append = |length: usize| {
            let error = "x".repeat(length);
            ledger.append(Event::Failed { id: 0, error, may_have_taken_effect: false }).unwrap();
        };
        let size = || fs::read(ledger.path()).unwrap().len();
        let before = size();
        append(0);
        let line = size() - before;
        append((2 * PAGE - size() % PAGE - line) % PAGE);
        assert_eq!(size() % PAGE, 0);
        let filled = fs::write(self.0.join("something else"), vec![b'x'; 1 << 20]);
        assert_eq!(filled.unwrap_err().kind(), std::io::ErrorKind::StorageFull);
    }
}

impl Drop for FullDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn on_a_full_disk_nothing_is_started_and_a_stop_works() {
    let fixture = Fixture::new();
    let folder = fixture.ledger().path().parent().unwrap().to_owned();
    let Some(disk) = FullDisk::over(&folder) else {
        println!("skipped: nothing may be mounted here, so there is no full disk");
        return;
    };
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    assert_eq!(tether.stop_pod(VEHICLE).await.unwrap().status, StopStatus::Stopped);
    disk.fill(&fixture.ledger());
    let journal = fs::read(fixture.ledger().path()).unwrap();
    let before = fixture.changes().len();
    let failure = tether.ensure_pod(&ensure(0)).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Config, "{failure:?}");
    assert!(failure.message.contains("free the disk"), "{failure:?}");
    assert_eq!(fixture.changes().len(), before);
    assert_eq!(tether.stop_pod(VEHICLE).await.unwrap().status, StopStatus::AlreadyStopped);
    // What was written before is whole, and a freed disk goes on from there.
    assert_eq!(fs::read(fixture.ledger().path()).unwrap(), journal);
    fs::remove_file(folder.join("something else")).unwrap();
    fixture.running(&tether).await;
    disk.fill(&fixture.ledger());
    assert_eq!(tether.stop_pod(VEHICLE).await.unwrap().status, StopStatus::Stopped);
    assert_eq!(fixture.status().await, "EXITED");
}

/// A newer podtether wrote it: what it means by its lines is not guessed at.
#[tokio::test(flavor = "multi_thread")]
async fn a_journal_from_a_newer_version_starts_nothing_and_a_stop_works() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    let path = fixture.ledger().path();
    let text = fs::read_to_string(&path).unwrap();
    let newer = text.replacen("\"v\":1", "\"v\":9", 1);
    assert_ne!(newer, text, "{text}");
    fs::write(&path, &newer).unwrap();
    let other = fixture.tether().await;
    starts_nothing_and_stops(&fixture, &other, "update podtether").await;
    assert_eq!(fs::read_to_string(&path).unwrap(), newer);
}

/// Root may write anywhere, so the folder is made immutable for it too, where the file system can.
#[tokio::test(flavor = "multi_thread")]
async fn in_a_read_only_state_folder_nothing_is_started_and_a_stop_works() {
    let fixture = Fixture::new();
    let folder = fixture.ledger().path().parent().unwrap().to_owned();
    let Some(disk) = FullDisk::over(&folder) else {
        println!("skipped: nothing may be mounted here, so no folder is read-only for root");
        return;
    };
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    let remounted = Command::new("mount").args(["-o", "remount,ro"]).arg(&disk.0).status().unwrap();
    assert!(remounted.success());
    starts_nothing_and_stops(&fixture, &tether, "mend the folder's permissions").await;
}

/// What stood in a journal that cannot be read is not known: for as long as a new pod may be hidden
/// nothing is created, and everybody is told.
#[tokio::test(flavor = "multi_thread")]
async fn after_a_corrupt_journal_nothing_is_created_for_a_while_and_it_is_said() {
    let fixture = Fixture::new();
    let path = fixture.ledger().path();
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, "no journal at all\nnor this\n").unwrap();
    let tether = fixture.tether().await;
    let failure = tether.ensure_pod(&ensure(0)).await.unwrap_err();
    assert_eq!(
        (failure.kind, failure.still_billing, failure.retryable),
        (FailureKind::Refused, StillBilling::Unknown, true),
        "{failure:?}"
    );
    let status = tether.pod_status(None).await.unwrap();
    assert!(status.message.contains("was set aside as"), "{}", status.message);
    assert_eq!(tether.stop_pod(VEHICLE).await.unwrap().status, StopStatus::StopUnconfirmed);
    let report = tether.spend_report().await.unwrap();
    assert!(report.covers.contains("was set aside as"), "{}", report.covers);
    // A question for the balance is a POST too.
    assert!(fixture.changes().iter().all(|change| change.path == "/graphql"));
    let later = tether.with_settings(Settings { absent_after: Duration::ZERO, ..QUICK });
    let answer = later.ensure_pod(&ensure(45)).await.unwrap();
    assert_eq!(answer.status, Some(EnsureStatus::Running), "{answer:?}");
    assert!(answer.warnings.iter().any(|warning| warning.contains("was set aside as")));
}

fn rename(fixture: &Fixture) {
    let text = fs::read_to_string(fixture.config_file()).unwrap();
    let text = text.replace("rover-pod", "crawler-pod").replace("  rover:", "  crawler:");
    fs::write(fixture.config_file(), text).unwrap();
}

/// Whoever renames a vehicle while its pod runs is told whose the pod is, and every way of stopping it
/// goes on working: by the old name, and with everything else.
#[tokio::test(flavor = "multi_thread")]
async fn the_pod_of_a_renamed_vehicle_is_told_and_can_be_stopped() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    for way in ["tool", "--vehicle", "--all"] {
        fixture.running(&tether).await;
        let before = fs::read_to_string(fixture.config_file()).unwrap();
        rename(&fixture);
        let renamed = fixture.tether().await;
        let failure = renamed.ensure_pod(&ensure(0)).await.unwrap_err();
        assert_eq!(failure.kind, FailureKind::Refused);
        let whose = "created by podtether for a vehicle that is not declared here";
        assert!(failure.message.contains(whose), "{}", failure.message);
        match way {
            "tool" => {
                let answer = renamed.stop_pod(VEHICLE).await.unwrap();
                assert_eq!(answer.status, StopStatus::Stopped);
                assert!(answer.message.contains("not declared any more"), "{}", answer.message);
            }
            "--vehicle" => {
                let (code, json) = fixture.stop(&["--vehicle", VEHICLE]).await;
                assert_eq!((code, &json["pods"][0]["off"]), (0, &json!(true)), "{json}");
            }
            _ => {
                let (code, json) = fixture.stop_all().await;
                assert_eq!((code, &json["pods"][0]["vehicle"]), (0, &json!(VEHICLE)), "{json}");
                assert_eq!(json["no_pod"], json!(["crawler"]));
            }
        }
        assert_eq!(fixture.status().await, "EXITED", "{way}");
        fs::write(fixture.config_file(), before).unwrap();
    }
    // A name that was never a vehicle's stays a slip, and asks nobody anything.
    rename(&fixture);
    let failure = fixture.tether().await.stop_pod("rovr").await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::BadInput, "{failure:?}");
}
