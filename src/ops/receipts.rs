//! The receipts of drills: a file for each vehicle beside the journal, one for the real cloud and one
//! for the local one, which never count for each other.

use super::Tether;
use super::host_id::host_id;
use crate::digest::hex;
use crate::domain::{
    Circumstances, FuseName, FuseReceipt, FuseReport, ProvenFuses, Receipts, Vehicle,
};
use crate::whole_file;
use chrono::TimeDelta;
use rand::RngExt as _;
use sha2::{Digest as _, Sha256};
use std::io;
use std::path::PathBuf;

impl Tether {
    /// Where the vehicle's receipts lie; `None` without a state folder.
    #[must_use]
    pub fn receipts_file(&self, vehicle: &Vehicle) -> Option<PathBuf> {
        let folder = self.ledger.as_ref()?.path().parent()?.to_owned();
        Some(folder.join(format!("fuses-{}.json", vehicle.name)))
    }

    /// The vehicle's receipts on this cloud. What cannot be read, or is of a later version, proves
    /// nothing.
    #[must_use]
    pub fn receipts(&self, vehicle: &Vehicle) -> Option<Receipts> {
        let text = std::fs::read(self.receipts_file(vehicle)?).ok()?;
        let receipts: Receipts = serde_json::from_slice(&text).ok()?;
        let is_ours = receipts.version == Receipts::VERSION
            && receipts.vehicle == vehicle.name.0
            && receipts.cloud == self.cloud_name().as_str();
        is_ours.then_some(receipts)
    }

    /// Receipts of this vehicle, cloud and machine to which a drill adds; a new file's when there is
    /// none that can be read.
    pub(crate) fn receipts_to_add_to(&self, vehicle: &Vehicle) -> Receipts {
        self.receipts(vehicle).unwrap_or_else(|| Receipts {
            version: Receipts::VERSION,
            vehicle: vehicle.name.0.clone(),
            cloud: self.cloud_name().as_str().to_owned(),
            salt: format!("{:016x}", rand::rng().random::<u64>()),
            fuses: Vec::new(),
        })
    }

    /// Takes new receipts into the file, whole or not at all, and returns where it lies.
    ///
    /// # Errors
    /// When it cannot be written; then the old ones stand.
    pub(crate) fn keep_receipts(
        &self,
        vehicle: &Vehicle,
        mut receipts: Receipts,
        newer: Vec<FuseReceipt>,
    ) -> io::Result<PathBuf> {
        let path = self.receipts_file(vehicle).ok_or(io::ErrorKind::NotFound)?;
        receipts.take(newer);
        whole_file::replace(&path, &receipts)?;
        Ok(path)
    }

    /// What a proof of this vehicle's fuses depends on, as it is now, under the salt of its receipts.
    pub(crate) fn circumstances(&self, vehicle: &Vehicle, salt: &str) -> Circumstances {
        let key = self.arming.as_ref().map_or("", |arming| arming.access.key.reveal());
        Circumstances {
            image: vehicle.image_name.clone(),
            account: fingerprint(salt, "account", key),
            host: fingerprint(salt, "host", host_id()),
            podtether: minor_version(env!("CARGO_PKG_VERSION")),
        }
    }

    /// What drills have proven of the vehicle's fuses and still counts.
    pub(crate) fn proven_fuses(&self, vehicle: &Vehicle) -> ProvenFuses {
        let receipts = self.receipts(vehicle);
        let salt = receipts.as_ref().map_or("", |receipts| &receipts.salt);
        let lasts = TimeDelta::from_std(self.config.receipts_last).unwrap_or(TimeDelta::MAX);
        let now = self.clock.now();
        let with = self.circumstances(vehicle, salt);
        let is_a_drill = self.is_a_drill;
        ProvenFuses { is_a_drill, ..ProvenFuses::of(receipts.as_ref(), &with, now, lasts) }
    }

    /// What a launch says of receipts; nothing where there are none and none are asked for.
    pub(crate) fn receipts_told(&self, vehicle: &Vehicle) -> Option<String> {
        let proven = self.proven_fuses(vehicle);
        let needed = self.config.limits_for(&vehicle.name).require_proven_fuses.unwrap_or(0);
        (needed > 0 || !proven.rows.is_empty()).then(|| format!("Drills: {}.", proven.told))
    }

    /// Adds to each fuse what its receipts say: beside the proof that it has now, or beside why it has
    /// none.
    pub(super) fn with_receipts(&self, vehicle: &Vehicle, fuses: &mut [FuseReport]) {
        let proven = self.proven_fuses(vehicle);
        for fuse in fuses {
            let name: FuseName = fuse.name;
            if let Some(words) = proven.of_row(name) {
                let beside = fuse.proof.as_mut().unwrap_or(&mut fuse.why);
                beside.push_str("; ");
                beside.push_str(words);
            }
        }
    }
}

/// Tells two values apart and gives none away: a salted hash, cut to 48 bits.
fn fingerprint(salt: &str, what: &str, value: &str) -> String {
    let hash = [salt, what, value]
        .iter()
        .fold(Sha256::new(), |hash, part| hash.chain_update(part).chain_update([0]));
    hex(&hash.finalize()[..6])
}

/// Major and minor of a version.
fn minor_version(version: &str) -> String {
    version.split('.').take(2).collect::<Vec<_>>().join(".")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// H01: the key is in no receipt, and one key has another fingerprint under another salt.
    #[test]
    fn a_fingerprint_tells_two_values_apart_and_gives_none_away() {
        let one = fingerprint("s1", "account", "rpa_SECRET");
        assert_eq!((one.len(), one.contains("SECRET")), (12, false));
        assert_eq!(one, fingerprint("s1", "account", "rpa_SECRET"));
        for other in
            [("s2", "account", "rpa_SECRET"), ("s1", "host", "rpa_SECRET"), ("s1", "account", "x")]
        {
            assert_ne!(one, fingerprint(other.0, other.1, other.2));
        }
        assert_eq!(minor_version("1.20.3"), "1.20");
    }
}
