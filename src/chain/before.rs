//! Pins and gates: what must be as it was when the campaign was written, on this computer and on the
//! pod, before a link begins and after it has ended.

use crate::digest::{hex, sha256_of_file};
use crate::domain::{Link, Marker, Pin, PinnedFile, Pod, Vehicle};
use crate::error::Failure;
use crate::ops::Tether;
use crate::pod::{Ask, Told};
use std::path::Path;
use std::time::Duration;

/// How long the volume may take over hashes of pinned files.
const HASHING: Duration = Duration::from_secs(60);
/// How long it may take to say what is there.
const LOOKING: Duration = Duration::from_secs(8);

/// Pinned files on this computer that are not what they were, in words.
pub(super) fn pins_here(link: &Link) -> Vec<String> {
    let one = |pin: &Pin| {
        let PinnedFile::Here(path) = &pin.file else { return None };
        fault_of_pin(&path.display().to_string(), hash_of(path), &pin.sha256)
    };
    link.pins.iter().filter_map(one).collect()
}

fn hash_of(path: &Path) -> Result<String, String> {
    sha256_of_file(path).map(|(_, hash)| hex(&hash)).map_err(|error| error.to_string())
}

fn fault_of_pin(file: &str, found: Result<String, String>, pinned: &str) -> Option<String> {
    match found {
        Ok(found) if found == pinned => None,
        Ok(found) => {
            Some(format!("{file} is not what is pinned: its SHA-256 is {found}, not {pinned}"))
        }
        Err(why) => Some(format!("{file} is pinned and cannot be compared: {why}")),
    }
}

/// What does not hold before the link, in words: pins on this computer and on the pod, and gates.
///
/// # Errors
/// When the pod or its volume does not answer.
pub(super) async fn faults(
    tether: &Tether,
    vehicle: &Vehicle,
    pod: &Pod,
    link: &Link,
) -> Result<Vec<String>, Failure> {
    let mut faults = pins_here(link);
    let on_pod: Vec<(&String, &Pin)> = link
        .pins
        .iter()
        .filter_map(|pin| match &pin.file {
            PinnedFile::OnPod(path) => Some((path, pin)),
            PinnedFile::Here(_) => None,
        })
        .collect();
    let asks: Vec<Ask> =
        on_pod.iter().map(|(path, _)| Ask::Sha256(vehicle.on_volume(path))).collect();
    let told = tether.look_at_files(vehicle, pod, HASHING, &asks).await?;
    for ((path, pin), told) in on_pod.into_iter().zip(told) {
        let found = match told {
            Told::Sha256(found) => found.map_err(|why| format!("it {why}")),
            _ => Err("nothing was told of it".to_owned()),
        };
        faults.extend(fault_of_pin(&vehicle.on_volume(path), found, &pin.sha256));
    }
    faults.extend(markers(tether, vehicle, pod, &link.before).await?);
    Ok(faults)
}

/// What of these does not hold, in words.
///
/// # Errors
/// When the pod or its volume does not answer.
pub(super) async fn markers(
    tether: &Tether,
    vehicle: &Vehicle,
    pod: &Pod,
    markers: &[Marker],
) -> Result<Vec<String>, Failure> {
    let path = |marker: &Marker| vehicle.on_volume(&marker.path);
    let asks: Vec<Ask> = markers.iter().map(|marker| Ask::Marker(path(marker))).collect();
    let told = tether.look_at_files(vehicle, pod, LOOKING, &asks).await?;
    let one = |(marker, told): (&Marker, Told)| match (told, marker.must_exist) {
        (Told::Marker(true), true) | (Told::Marker(false), false) => None,
        (Told::Marker(false), true) => Some(format!("{} is not there and must be", path(marker))),
        (Told::Marker(true), false) => Some(format!("{} is there and must not be", path(marker))),
        _ => Some(format!("nothing was told of {}", path(marker))),
    };
    Ok(markers.iter().zip(told).filter_map(one).collect())
}

/// What is looked at before a link, for whoever reads the plan.
pub(super) fn told(link: &Link) -> Vec<String> {
    let pins = link.pins.iter().map(|pin| match &pin.file {
        PinnedFile::Here(path) => format!("{} is as pinned", path.display()),
        PinnedFile::OnPod(path) => format!("{path} on the pod is as pinned"),
    });
    pins.chain(link.before.iter().map(told_of)).collect()
}

/// A gate in words.
pub(super) fn told_of(marker: &Marker) -> String {
    let word = if marker.must_exist { "is there" } else { "is not there" };
    format!("{} {word}", marker.path)
}
