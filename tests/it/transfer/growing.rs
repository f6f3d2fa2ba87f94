//! Pulls of a folder that grows: what was equal on both sides is not read again, and what has changed on
//! either side is.

use super::{Scene, noise};
use podtether::pod::transfer::{PullReport, PullRequest, pull};
use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

impl Scene {
    async fn pull_noted(&self, settled: Duration, rehash: bool) -> PullReport {
        let manifest = Some(self.sshd.path("manifest.jsonl"));
        let request = PullRequest { manifest, settled, rehash, ..self.request() };
        let report = pull(&request, &self.shell, |_| {}).await.unwrap();
        assert!(report.complete, "{report:?}");
        report
    }
}

fn overwrite(path: &Path, content: &[u8], time: SystemTime) {
    fs::write(path, content).unwrap();
    fs::File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
}

#[tokio::test]
async fn only_what_is_new_or_has_changed_on_either_side_is_hashed_again() {
    let Some(scene) = Scene::new().await else { return };
    let now = Duration::ZERO;
    for name in ["a", "b", "sub/c"] {
        scene.write(name, noise(10_000));
    }
    let first = scene.pull_noted(now, false).await;
    assert_eq!((first.hashed, first.unchanged, first.unchanged_since), (3, 0, None));
    let again = scene.pull_noted(now, false).await;
    assert_eq!((again.hashed, again.unchanged, again.files), (0, 3, 0));
    assert!(again.unchanged_since.is_some());
    scene.write("d", "new");
    let grown = scene.pull_noted(now, false).await;
    assert_eq!((grown.hashed, grown.unchanged, grown.files), (1, 3, 1));

    // Another content of the same size and time, there and here: only the inode's own time tells.
    let mut other = noise(10_000);
    other[5_000] ^= 1;
    let (there, here) = (scene.remote.join("a"), scene.local.join("b"));
    let time = |path: &Path| fs::metadata(path).unwrap().modified().unwrap();
    let (time_there, time_here) = (time(&there), time(&here));
    overwrite(&there, &other, time_there);
    overwrite(&here, &other, time_here);
    let mended = scene.pull_noted(now, false).await;
    assert_eq!((mended.hashed, mended.unchanged, mended.files), (2, 2, 2));
    assert!(fs::read(scene.local.join("a")).unwrap() == other);
    assert!(fs::read(&here).unwrap() == noise(10_000));

    // On request everything is read again; and what was gone here comes again.
    assert_eq!(scene.pull_noted(now, true).await.hashed, 4);
    fs::remove_file(&here).unwrap();
    let back = scene.pull_noted(now, false).await;
    assert_eq!((back.hashed, back.unchanged, back.files), (1, 3, 1));
}

/// A file that changes twice within one tick of a clock keeps its times, so a young one is not
/// trusted.
#[tokio::test]
async fn a_file_that_changed_a_moment_ago_is_hashed_the_next_time_too() {
    let Some(scene) = Scene::new().await else { return };
    scene.write("a", "1");
    for _ in 0..2 {
        let report = scene.pull_noted(Duration::from_secs(3600), false).await;
        assert_eq!((report.hashed, report.unchanged), (1, 0));
    }
}
