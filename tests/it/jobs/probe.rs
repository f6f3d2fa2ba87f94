//! What a pod says about itself.

use super::{Bench, look_at};
use podtether::domain::PodId;
use podtether::pod::jobs::AnswerError;
use podtether::pod::{GpuUse, LookAt, MountKind, PodProbe, look_command, parse_look};
use std::fs;

fn probe(bench: &Bench, pod: &str, token: &str) -> Result<PodProbe, AnswerError> {
    let (mount, pod) = (bench.mount(), PodId(pod.to_owned()));
    let command = look_command(&LookAt { pod: &pod, token, ..look_at(&mount) });
    parse_look(&bench.run(&command)).map(|look| look.pod)
}

#[test]
fn a_pod_tells_what_it_has() {
    let bench = Bench::new();
    bench.environment_file("export RUNPOD_POD_ID=\"pod1\"\nexport X=\"$nothing\"\n");
    bench.fake("nvidia-smi", "echo '550.54.15, 87, 1024, 24564'; echo '550.54.15, [N/A], 1, 2'");
    let found = probe(&bench, "pod1", "token").unwrap();
    assert_eq!(found.pod_id, Some(PodId("pod1".to_owned())));
    assert_eq!(found.driver.as_deref(), Some("550.54.15"));
    assert_eq!(
        found.gpus,
        [
            GpuUse { percent: Some(87), used_mib: Some(1024), total_mib: Some(24_564) },
            GpuUse { percent: None, used_mib: Some(1), total_mib: Some(2) },
        ]
    );
    assert!(found.mount_free.unwrap() > 0 && found.disk_free.unwrap() > 0);
    assert!(found.uptime.unwrap().as_secs() > 0);
    assert_ne!(found.mount, MountKind::Missing);
}

/// F01: a volume keeps its first token, and a pod that is not the expected one is given none.
#[test]
fn a_token_is_left_only_on_the_expected_pod_and_only_once() {
    let bench = Bench::new().with("PODTETHER_LOCAL_POD", "probe");
    assert_eq!(probe(&bench, "pod1", "t0").unwrap().identity, None);
    bench.environment_file("export RUNPOD_POD_ID=other\n");
    assert_eq!(probe(&bench, "pod1", "t0").unwrap().identity, None);
    assert!(!bench.path("work space/.podtether").exists());
    bench.environment_file("export RUNPOD_POD_ID=pod1\n");
    assert_eq!(probe(&bench, "pod1", "t1").unwrap().identity.as_deref(), Some("t1"));
    assert_eq!(probe(&bench, "pod1", "t2").unwrap().identity.as_deref(), Some("t1"));
    assert_eq!(fs::read_dir(bench.path("work space/.podtether")).unwrap().count(), 1);
}

/// D08, D11: what is on the container disk is no volume. With an identity on it a pull would take it
/// for one, and an empty folder for what the volume holds.
#[test]
fn what_is_on_the_container_disk_is_given_no_identity() {
    // The target folder, as a temporary one may be a file system of its own.
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let mount = folder.path().to_str().unwrap();
    let mut bench = Bench::new();
    bench.environment_file("export RUNPOD_POD_ID=pod1\n");
    let look = |bench: &Bench| {
        let command = look_command(&LookAt { token: "t", ..look_at(mount) });
        parse_look(&bench.run(&command)).unwrap().pod
    };
    let found = look(&bench);
    if found.mount != MountKind::SameDevice {
        println!("skipped: the target folder is not on the device of /");
        return;
    }
    assert_eq!(found.identity, None);
    assert!(!folder.path().join(".podtether").exists());
    bench.set("PODTETHER_LOCAL_POD", "probe");
    assert_eq!(look(&bench).identity.as_deref(), Some("t"));
}

/// D11: a volume that is not mounted is told from one that is.
#[test]
fn the_mount_is_told_from_a_folder_of_the_container() {
    let bench = Bench::new();
    let at = |mount: &str| {
        let command = look_command(&LookAt { token: "t", ..look_at(mount) });
        parse_look(&bench.run(&command)).unwrap().pod.mount
    };
    assert_eq!(at("/no such mount"), MountKind::Missing);
    assert_eq!(at("/"), MountKind::SameDevice);
    assert_eq!(at("/proc"), MountKind::Device);
    std::os::unix::fs::symlink(bench.mount(), bench.path("link")).unwrap();
    assert_eq!(at(bench.path("link").to_str().unwrap()), MountKind::Symlink);
}

/// A pod may come back with no GPU, and its driver may not answer.
#[test]
fn a_pod_without_a_gpu_is_no_error() {
    let bench = Bench::new();
    for body in ["echo 'No devices were found'; exit 6", "echo 'driver mismatch' >&2; exit 18"] {
        bench.fake("nvidia-smi", body);
        let found = probe(&bench, "pod1", "").unwrap();
        assert_eq!((found.driver, found.gpus), (None, vec![]), "{body}");
    }
}

#[test]
fn a_probe_that_was_cut_proves_nothing() {
    let bench = Bench::new();
    let mut output = bench.run(&look_command(&look_at(&bench.mount())));
    output.stdout.bytes.truncate(output.stdout.bytes.len() - 4);
    output.stdout.total = output.stdout.bytes.len() as u64;
    assert!(matches!(parse_look(&output), Err(AnswerError::Cut { .. })));
}
