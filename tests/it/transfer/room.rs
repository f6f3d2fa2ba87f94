//! Where files may not go, or not as they are called: no room, no volume, names that one disk cannot
//! tell apart, owners of the pod.

use super::{Scene, tree};
use crate::sshd::skip;
use podtether::pod::transfer::{Marker, PullRequest, TransferError, pull};
use std::fs;
use std::os::unix::fs::MetadataExt as _;

/// Said before anything moves, and not asked when nothing is to come.
#[tokio::test]
async fn a_pull_that_would_fill_this_disk_is_refused_before_anything_moves() {
    let Some(scene) = Scene::new().await else { return };
    scene.write("model.pt", vec![7; 100_000]);
    let request = PullRequest { keep_free: 1 << 60, ..scene.request() };
    let error = pull(&request, &scene.shell, |_| panic!("something moved")).await.unwrap_err();
    let TransferError::NoRoom { missing, keep_free, free, .. } = &error else { panic!("{error}") };
    assert_eq!((*missing, *keep_free), (100_000, 1 << 60));
    assert!(*free > 0 && error.to_string().contains("nothing was pulled"), "{error}");
    assert!(tree(&scene.local).is_empty());
    assert!(scene.pull().await.unwrap().complete);
    assert!(pull(&request, &scene.shell, |_| {}).await.unwrap().complete);
}

/// D08: the folder is there, and the volume is not, or is another one.
#[tokio::test]
async fn a_volume_without_our_marker_is_not_pulled_from() {
    let Some(scene) = Scene::new().await else { return };
    scene.write("a", "1");
    let path = scene.sshd.path("identity").display().to_string();
    let marker = Some(Marker { path: path.clone(), token: "ours".to_owned() });
    let request = PullRequest { marker, ..scene.request() };
    for (content, words) in [(None, "there is no"), (Some("theirs"), "names theirs")] {
        if let Some(content) = content {
            fs::write(&path, content).unwrap();
        }
        let error = pull(&request, &scene.shell, |_| {}).await.unwrap_err();
        assert!(matches!(error, TransferError::NotMounted { .. }), "{error}");
        assert!(error.to_string().contains(words), "{error}");
    }
    fs::write(&path, "ours\n").unwrap();
    assert!(pull(&request, &scene.shell, |_| {}).await.unwrap().complete);
}

#[tokio::test]
async fn names_that_this_disk_cannot_tell_apart_are_kept_apart() {
    for carrier in ["rsync", "tar"] {
        let Some(scene) = Scene::new().await else { return };
        for name in ["A.txt", "a.txt", "b", "Logs/x", "logs/x"] {
            scene.write(name, format!("this is {name}"));
        }
        let rsync = (carrier == "rsync").then(|| scene.rsync.clone());
        let request = PullRequest { name_blind: Some(true), rsync, ..scene.request() };
        let report = pull(&request, &scene.shell, |_| {}).await.unwrap();
        assert!(report.complete, "{carrier}: {report:?}");
        assert_eq!((report.files, report.hashed), (5, 5), "{carrier}: {report:?}");
        let found = tree(&scene.local);
        let expected = [
            ("A.txt", "A.txt"),
            ("Logs/x", "Logs/x"),
            ("a~2.txt", "a.txt"),
            ("b", "b"),
            ("logs~2/x", "logs/x"),
        ]
        .map(|(here, there)| (here.to_owned(), format!("this is {there}").into_bytes()));
        assert_eq!(found, expected, "{carrier}");
        let said = report.warnings.iter().filter(|said| said.contains("only by case"));
        assert_eq!(said.count(), 2, "{carrier}: {:?}", report.warnings);
        // The next pull finds them under those names.
        let again = pull(&request, &scene.shell, |_| {}).await.unwrap();
        assert!(again.complete && tree(&scene.local) == found, "{carrier}: {again:?}");
        if carrier == "rsync" {
            assert_eq!(again.files, 0, "{again:?}");
        }
    }
}

#[tokio::test]
async fn owners_and_special_bits_of_the_pod_are_not_taken_over() {
    if !rustix::process::geteuid().is_root() {
        return skip("only root can give files away");
    }
    for carrier in ["rsync", "tar"] {
        let Some(scene) = Scene::new().await else { return };
        scene.write("theirs", "x");
        std::os::unix::fs::chown(scene.remote.join("theirs"), Some(12_345), Some(12_345)).unwrap();
        let rsync = (carrier == "rsync").then(|| scene.rsync.clone());
        let request = PullRequest { rsync, ..scene.request() };
        assert!(pull(&request, &scene.shell, |_| {}).await.unwrap().complete);
        let meta = fs::metadata(scene.local.join("theirs")).unwrap();
        assert_eq!((meta.uid(), meta.gid()), (0, 0), "{carrier}");
    }
}
