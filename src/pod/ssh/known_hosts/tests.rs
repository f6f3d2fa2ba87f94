use super::*;
use russh::keys::PrivateKey;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

fn key(algorithm: Algorithm) -> PublicKey {
    PrivateKey::random(&mut rand::rng(), algorithm).unwrap().public_key().clone()
}

fn ed25519() -> PublicKey {
    key(Algorithm::Ed25519)
}

fn boot(boot: &str) -> BootName<'_> {
    BootName::new("pod1", boot).unwrap()
}

const BOOT: &str = "2026-07-03 13:25:25.682 +0000 UTC";

fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("known hosts");
    (folder, file)
}

/// F05: accepted once per boot, strict within it, replaced by the next.
#[test]
fn a_pin_holds_for_one_boot() {
    let (_folder, file) = folder();
    let (first, second) = (ed25519(), ed25519());
    check(&file, boot(BOOT), &first).unwrap();
    check(&file, boot(BOOT), &first).unwrap();
    let other_algorithm = key(Algorithm::Ecdsa { curve: russh::keys::EcdsaCurve::NistP256 });
    for changed in [&second, &other_algorithm] {
        let error = check(&file, boot(BOOT), changed).unwrap_err();
        assert!(matches!(error, KnownHostsError::Changed { .. }), "{error}");
    }
    check(&file, boot("later"), &second).unwrap();
    assert!(check(&file, boot("later"), &first).is_err());
    assert_eq!(fs::read_to_string(&file).unwrap().lines().count(), 1);
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn lines_of_other_names_are_kept_byte_for_byte() {
    let (_folder, file) = folder();
    let theirs = ed25519().to_openssh().unwrap();
    let others = format!(
        "# mine\n\n|1|c2FsdA==|aGFzaA== {theirs}\n[1.2.3.4]:22022,x\t{theirs}  odd  comment \n@cert-authority *.x {theirs}\n"
    );
    fs::write(&file, &others).unwrap();
    check(&file, boot(BOOT), &ed25519()).unwrap();
    let pinned = fs::read_to_string(&file).unwrap();
    assert!(pinned.starts_with(&others), "{pinned}");
    assert!(pinned.trim_end().ends_with(&format!("podtether boot={BOOT}")), "{pinned}");
    reset(&file, "pod1").unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), others);
}

/// A pin that somebody wrote by hand names no boot and binds all of them, until it is reset.
#[test]
fn a_pin_written_by_hand_is_never_replaced_silently() {
    let (_folder, file) = folder();
    let (theirs, shown) = (ed25519(), ed25519());
    fs::write(&file, format!("pod1 {}\n", theirs.to_openssh().unwrap())).unwrap();
    assert!(check(&file, boot(BOOT), &shown).is_err());
    check(&file, boot(BOOT), &theirs).unwrap();
    reset(&file, "pod1").unwrap();
    check(&file, boot(BOOT), &shown).unwrap();
}

#[test]
fn a_revoked_key_is_refused_under_every_name() {
    let (_folder, file) = folder();
    let key = ed25519();
    fs::write(&file, format!("@revoked |1|x|y {}\n", key.to_openssh().unwrap())).unwrap();
    let error = check(&file, boot(BOOT), &key).unwrap_err();
    assert!(matches!(error, KnownHostsError::Revoked { .. }), "{error}");
}

#[test]
fn a_file_that_cannot_be_trusted_is_an_error_and_never_empty() {
    let (folder, file) = folder();
    for text in ["pod1 ssh-ed25519\n", "pod1 ssh-ed25519 AAAA\n", "@odd pod1 x y\n", "nonsense\n"] {
        fs::write(&file, text).unwrap();
        let error = check(&file, boot(BOOT), &ed25519()).unwrap_err();
        assert!(matches!(error, KnownHostsError::Malformed { number: 1, .. }), "{text}: {error}");
        assert!(reset(&file, "pod1").is_err());
        assert_eq!(fs::read_to_string(&file).unwrap(), text);
    }
    fs::write(&file, "").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
    let error = check(&file, boot(BOOT), &ed25519()).unwrap_err();
    assert!(matches!(error, KnownHostsError::Untrusted { .. }), "{error}");
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(&file, &link).unwrap();
    let error = check(&link, boot(BOOT), &ed25519()).unwrap_err();
    assert!(matches!(error, KnownHostsError::Untrusted { .. }), "{error}");
    assert!(check(folder.path(), boot(BOOT), &ed25519()).is_err());
}

#[test]
fn names_that_would_break_the_file_are_refused() {
    for (pod, boot) in [("", "b"), ("a b", "b"), ("a,b", "b"), ("*", "b"), ("a", ""), ("a", "b\nc")]
    {
        assert!(BootName::new(pod, boot).is_err(), "{pod:?} {boot:?}");
    }
}

#[test]
fn twenty_first_contacts_at_once_leave_one_pin() {
    let (_folder, file) = folder();
    let keys: Vec<PublicKey> = (0..20).map(|_| ed25519()).collect();
    let accepted: usize = std::thread::scope(|scope| {
        let checks: Vec<_> = keys
            .iter()
            .map(|key| scope.spawn(|| usize::from(check(&file, boot(BOOT), key).is_ok())))
            .collect();
        checks.into_iter().map(|check| check.join().unwrap()).sum()
    });
    assert_eq!(accepted, 1);
    assert_eq!(fs::read_to_string(&file).unwrap().lines().count(), 1);
}
