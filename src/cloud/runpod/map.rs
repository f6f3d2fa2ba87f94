//! Wire shapes to the domain's strict types. Every default for something absent is named here, and
//! whatever has no safe default makes the answer malformed. Pure.

use super::instant;
use super::wire::{
    BillingWire, DataCenterWire, GpuTypeWire, GpuWire, MountsWire, PodWire, Scalar, SshWire,
    VolumeWire,
};
use crate::cloud::{BilledSpan, DataCenter};
use crate::domain::{
    CloudTier, DataCenterId, GpuOffer, GpuTypeId, NetworkMount, Pod, PodId, PodStatus, Price,
    SshEndpoint, Stock, Usd, Volume, VolumeId,
};
use serde_json::Value;
use std::collections::BTreeMap;

/// Something without which an answer means nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} has no usable {field}")]
pub struct Missing {
    /// What it belongs to.
    pub what: &'static str,
    /// The field.
    pub field: &'static str,
}

/// A pod. Only the id is needed; everything else has the default that makes the rules say no to
/// spending and yes to stopping.
///
/// # Errors
/// [`Missing`] without an id.
pub fn pod(wire: PodWire) -> Result<Pod, Missing> {
    let id = present(wire.id).ok_or(Missing { what: "a pod", field: "id" })?;
    Ok(Pod {
        id: PodId(id),
        // Nameless counts as a stranger.
        name: wire.name.unwrap_or_default(),
        // No status reads as a word that is not known: counted as billing.
        status: PodStatus::from(wire.status.as_deref().unwrap_or_default()),
        gpu: wire.gpu.and_then(gpu),
        cloud: CloudTier::from(wire.cloud.as_deref().unwrap_or_default()),
        data_center: present(wire.data_center_id).map(DataCenterId),
        mounts: wire.mounts.map(mounts).unwrap_or_default(),
        price: rate(wire.cost.as_ref()),
        ssh: wire.ssh.and_then(endpoint),
        env: env(wire.env),
        // A stop is tried and the provider says no, rather than not tried.
        locked: wire.locked.unwrap_or(false),
        cluster: !wire.cluster.is_null(),
        interruptible: wire.interruptible.unwrap_or(false),
        created_at: wire.created_at.as_deref().and_then(instant::parse),
        started_at: wire.started_at.as_deref().and_then(instant::parse),
        cuda_version: present(wire.cuda_version),
    })
}

/// A network volume. All four fields are needed: its size is money and its place decides where a
/// pod can run.
///
/// # Errors
/// [`Missing`] without one of them.
pub fn volume(wire: VolumeWire) -> Result<Volume, Missing> {
    let missing = |field| Missing { what: "a network volume", field };
    Ok(Volume {
        id: VolumeId(present(wire.id).ok_or(missing("id"))?),
        name: wire.name.ok_or(missing("name"))?,
        size_gb: whole(wire.size.as_ref()).ok_or(missing("size"))?,
        data_center: DataCenterId(present(wire.data_center).ok_or(missing("dataCenter"))?),
    })
}

/// A GPU type's offer in the SECURE cloud. The catalog quotes a secure price also where the type is
/// not sold there, so it counts only together with `secure: true`.
///
/// # Errors
/// [`Missing`] without an id.
pub fn gpu_offer(wire: GpuTypeWire) -> Result<GpuOffer, Missing> {
    let id = present(wire.id).ok_or(Missing { what: "a GPU type", field: "id" })?;
    let sold = wire.secure == Some(true);
    let quoted = wire.price.and_then(|price| price.secure);
    Ok(GpuOffer {
        id: GpuTypeId(id),
        memory_gb: whole(wire.memory.as_ref()),
        price: if sold { rate(quoted.as_ref()) } else { Price::Unknown },
        stock: stock(wire.availability.as_deref()),
        data_centers: wire
            .data_centers
            .unwrap_or_default()
            .into_iter()
            .filter_map(|place| {
                Some((DataCenterId(present(place.id)?), stock(place.availability.as_deref())))
            })
            .collect(),
    })
}

/// A data centre. Without its volume types it is taken to have none: nothing is created there.
///
/// # Errors
/// [`Missing`] without an id.
pub fn data_center(wire: DataCenterWire) -> Result<DataCenter, Missing> {
    Ok(DataCenter {
        id: DataCenterId(present(wire.id).ok_or(Missing { what: "a data centre", field: "id" })?),
        has_network_volumes: wire.network_volume_types.is_some_and(|types| !types.is_empty()),
    })
}

/// What a pod was billed.
///
/// # Errors
/// [`Missing`] without the pod's id or the span.
pub fn pod_bill(wire: BillingWire) -> Result<BilledSpan, Missing> {
    let disk = amount(wire.disk_amount.as_ref());
    let id = wire.pod_id.clone();
    billed("a pod's billing record", "podId", id, &wire, disk)
}

/// What a network volume was billed; all of it is for disks.
///
/// # Errors
/// [`Missing`] without the volume's id or the span.
pub fn volume_bill(wire: BillingWire) -> Result<BilledSpan, Missing> {
    let disk = amount(wire.total_amount.as_ref());
    let id = wire.network_volume_id.clone();
    billed("a volume's billing record", "networkVolumeId", id, &wire, disk)
}

fn billed(
    what: &'static str,
    id_field: &'static str,
    id: Option<String>,
    wire: &BillingWire,
    disk: Option<Usd>,
) -> Result<BilledSpan, Missing> {
    let time = |text: &Option<String>, field| {
        text.as_deref().and_then(instant::parse).ok_or(Missing { what, field })
    };
    Ok(BilledSpan {
        id: present(id).ok_or(Missing { what, field: id_field })?,
        start: time(&wire.start_time, "startTime")?,
        end: time(&wire.end_time, "endTime")?,
        total: amount(wire.total_amount.as_ref()),
        disk,
    })
}

/// A rate. Zero is no rate: v2 reports 0.0 for a stopped pod, and a running pod has been seen with
/// cost 0 (runpod-python #438). Unknown refuses a spend; a free pod would pass every limit.
fn rate(scalar: Option<&Scalar>) -> Price {
    let price = scalar.map_or(Price::Unknown, |scalar| Price::from_decimal(scalar.0.trim()));
    match price.known() {
        Some(rate) if rate.per_hour() > Usd::ZERO => price,
        _ => Price::Unknown,
    }
}

fn amount(scalar: Option<&Scalar>) -> Option<Usd> {
    Usd::from_decimal(scalar?.0.trim()).ok()
}

/// A whole number, also when written as `24.0`.
fn whole(scalar: Option<&Scalar>) -> Option<u32> {
    let text = scalar?.0.trim();
    let digits = match text.split_once('.') {
        Some((digits, zeros)) if zeros.bytes().all(|byte| byte == b'0') => digits,
        Some(_) => return None,
        None => text,
    };
    digits.parse().ok()
}

fn present(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.trim().is_empty())
}

/// The specification's default for a missing count is 1; a count of 0 is kept, since a pod can come
/// back from a stop with no GPU.
fn gpu(wire: GpuWire) -> Option<(GpuTypeId, u32)> {
    let count = match wire.count {
        Some(count) => whole(Some(&count))?,
        None => 1,
    };
    Some((GpuTypeId(present(wire.id)?), count))
}

/// A mount without a volume is no mount: the rule that wants ours refuses.
fn mounts(wire: MountsWire) -> Vec<NetworkMount> {
    wire.network
        .unwrap_or_default()
        .into_iter()
        .filter_map(|mount| {
            Some(NetworkMount {
                volume_id: VolumeId(present(mount.volume_id)?),
                path: mount.path.unwrap_or_default(),
            })
        })
        .collect()
}

/// Absent, empty or half-filled means "not ready yet". RunPod's own images log in as root.
fn endpoint(wire: SshWire) -> Option<SshEndpoint> {
    let direct = wire.direct?;
    let port = u16::try_from(whole(direct.port.as_ref())?).ok().filter(|port| *port > 0)?;
    Some(SshEndpoint {
        host: present(direct.host)?,
        port,
        user: present(direct.username).unwrap_or_else(|| "root".to_owned()),
    })
}

fn env(wire: Value) -> BTreeMap<String, String> {
    let Value::Object(entries) = wire else { return BTreeMap::new() };
    entries
        .into_iter()
        .map(|(name, value)| match value {
            Value::String(text) => (name, text),
            Value::Null => (name, String::new()),
            other => (name, other.to_string()),
        })
        .collect()
}

fn stock(word: Option<&str>) -> Stock {
    match word.map(str::to_ascii_uppercase).as_deref() {
        Some("NONE" | "OUT") => Stock::None,
        Some("LOW") => Stock::Low,
        Some("MEDIUM") => Stock::Medium,
        Some("HIGH") => Stock::High,
        _ => Stock::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::UsdPerHour;
    use serde_json::json;

    fn read(value: Value) -> Pod {
        pod(serde_json::from_value(value).unwrap()).unwrap()
    }

    /// E16: whatever is missing or odd, the pod stays in the list, named, and counted as billing.
    #[test]
    fn one_odd_field_never_hides_a_pod() {
        let odd = read(json!({
            "id": "p1", "name": "lts-replication", "status": 7, "gpu": [], "cloud": null,
            "dataCenterId": {}, "mounts": "none", "cost": {}, "ssh": false, "env": ["A=1"],
            "locked": "no", "cluster": null, "interruptible": 1, "createdAt": 5,
            "startedAt": "soon", "cudaVersion": 12.4, "newField": {"x": 1}
        }));
        assert_eq!(odd.name, "lts-replication");
        assert!(odd.status.bills_compute());
        assert_eq!((odd.gpu, odd.price, odd.ssh), (None, Price::Unknown, None));
        assert_eq!((odd.locked, odd.cluster, odd.mounts.len()), (false, false, 0));

        let bare = read(json!({ "id": "p1" }));
        assert!(bare.status.bills_compute());
        assert_eq!(bare.name, "");
    }

    #[test]
    fn a_status_that_is_not_known_is_kept_word_for_word() {
        let moved = read(json!({ "id": "p1", "status": "MIGRATING" }));
        assert_eq!(moved.status, PodStatus::Other("MIGRATING".to_owned()));
        assert!(read(json!({ "id": "p1", "cluster": { "id": "c" } })).cluster);
    }

    #[test]
    fn a_pod_without_an_id_is_no_pod() {
        for value in [json!({}), json!({ "id": "" }), json!({ "id": null }), json!({ "id": 5 })] {
            let wire = serde_json::from_value(value).unwrap();
            assert_eq!(pod(wire), Err(Missing { what: "a pod", field: "id" }));
        }
    }

    /// A rate of zero would pass every limit.
    #[test]
    fn only_a_positive_finite_price_is_known() {
        let price = |cost: Value| read(json!({ "id": "p", "cost": cost })).price;
        for (cost, micros) in
            [(json!(0.69), 690_000), (json!("0.74"), 740_000), (json!(1), 1_000_000)]
        {
            let expected = Price::Known(UsdPerHour::new(Usd::from_micros(micros)));
            assert_eq!(price(cost.clone()), expected, "{cost}");
        }
        for cost in [
            json!(0),
            json!(0.0),
            json!("0"),
            json!("NaN"),
            json!("inf"),
            json!(-1),
            json!(""),
            Value::Null,
        ] {
            assert_eq!(price(cost.clone()), Price::Unknown, "{cost}");
        }
        assert_eq!(read(json!({ "id": "p" })).price, Price::Unknown);
    }

    #[test]
    fn a_half_filled_ssh_address_is_not_ready() {
        let ssh = |direct: Value| read(json!({ "id": "p", "ssh": { "direct": direct } })).ssh;
        let full = SshEndpoint { host: "1.2.3.4".into(), port: 22_022, user: "root".into() };
        assert_eq!(
            ssh(json!({ "host": "1.2.3.4", "port": 22022, "username": "root" })),
            Some(full.clone())
        );
        assert_eq!(ssh(json!({ "host": "1.2.3.4", "port": "22022" })), Some(full));
        for direct in [
            Value::Null,
            json!({}),
            json!({ "host": "", "port": 22 }),
            json!({ "host": "1.2.3.4", "port": null }),
            json!({ "host": "1.2.3.4", "port": 0 }),
            json!({ "host": "1.2.3.4", "port": 70_000 }),
        ] {
            assert_eq!(ssh(direct.clone()), None, "{direct}");
        }
    }

    #[test]
    fn a_pod_that_lost_its_gpus_says_zero_and_not_one() {
        let count = |gpu: Value| read(json!({ "id": "p", "gpu": gpu })).gpu.map(|(_, count)| count);
        assert_eq!(count(json!({ "id": "G", "count": 0 })), Some(0));
        assert_eq!(count(json!({ "id": "G", "count": "2" })), Some(2));
        assert_eq!(count(json!({ "id": "G" })), Some(1));
        assert_eq!(count(json!({ "id": "G", "count": 1.5 })), None);
    }

    #[test]
    fn a_secure_price_counts_only_where_the_type_is_sold_in_the_secure_cloud() {
        let offer = |secure: Value| {
            let wire =
                json!({ "id": "G", "memory": 24, "secure": secure, "price": { "secure": 0.44 } });
            gpu_offer(serde_json::from_value(wire).unwrap()).unwrap()
        };
        assert!(offer(json!(true)).price.known().is_some());
        assert_eq!(offer(json!(false)).price, Price::Unknown);
        assert_eq!(offer(Value::Null).price, Price::Unknown);
        assert_eq!(offer(json!(true)).memory_gb, Some(24));
    }

    #[test]
    fn stock_words_are_read_in_either_case_and_never_guessed() {
        for (word, expected) in [
            (Some("HIGH"), Stock::High),
            (Some("Medium"), Stock::Medium),
            (Some("low"), Stock::Low),
            (Some("NONE"), Stock::None),
            (Some("PLENTY"), Stock::Unknown),
            (None, Stock::Unknown),
        ] {
            assert_eq!(stock(word), expected, "{word:?}");
        }
    }

    #[test]
    fn a_bill_without_an_amount_is_kept_as_unknown_and_one_without_a_span_is_refused() {
        let record = json!({
            "podId": "p", "startTime": "2026-06-01T00:00:00Z",
            "endTime": "2026-06-02 00:00:00 +0000 UTC", "totalAmount": "NaN", "diskAmount": 0.1
        });
        let span = pod_bill(serde_json::from_value(record).unwrap()).unwrap();
        assert_eq!((span.total, span.disk), (None, Some(Usd::from_micros(100_000))));
        let record = json!({ "podId": "p", "startTime": "?", "endTime": "2026-06-02T00:00:00Z" });
        let refused = pod_bill(serde_json::from_value(record).unwrap()).unwrap_err();
        assert_eq!(refused.field, "startTime");
    }
}
