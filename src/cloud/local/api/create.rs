//! The body of a create: what the provider's schema says, then the rules across fields.

use super::super::catalog::{self, DATA_CENTERS, DataCenter, GPU_TYPES, GpuType, HOSTS, Stock};
use super::super::document::{Document, Mount, Status};
use super::super::problem::Problem;
use super::super::twin::Twin;
use super::shape::{Shape, is_version};
use serde_json::Value;
use std::collections::BTreeMap;

#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Body {
    pub name: String,
    pub image: Option<String>,
    pub args: Option<String>,
    pub disk: Option<u32>,
    #[serde(default)]
    pub ports: Vec<String>,
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    pub gpu: Option<Gpu>,
    pub cpu: Option<Value>,
    pub cloud: Option<String>,
    #[serde(default)]
    pub data_center_ids: Vec<String>,
    pub mounts: Option<Mounts>,
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Gpu {
    pub id: String,
    pub count: Option<u32>,
    #[serde(default)]
    pub allowed_cuda_versions: Vec<String>,
    pub min_cuda_version: Option<String>,
}

#[derive(serde::Deserialize)]
pub struct Mounts {
    pub persistent: Option<Value>,
    #[serde(default)]
    pub network: Vec<Mount>,
}

/// Reads a body that matches the schema `CreatePodRequest`.
pub fn read(body: &Value) -> Result<Body, Problem> {
    let mut shape = Shape::default();
    check(&mut shape, body);
    let errors = shape.into_errors();
    if !errors.is_empty() {
        return Err(Problem::unprocessable(errors));
    }
    serde_json::from_value(body.clone())
        .map_err(|error| Problem::unprocessable(vec![format!("$: {error}")]))
}

const FIELDS: &[&str] = &[
    "name",
    "image",
    "args",
    "disk",
    "env",
    "ports",
    "registry",
    "cloud",
    "cpu",
    "dataCenterIds",
    "globalNetworking",
    "gpu",
    "mounts",
    "startJupyter",
    "startSsh",
    "templateId",
];

fn check(shape: &mut Shape, body: &Value) {
    let image = if body.get("templateId").is_some() { &[][..] } else { &["image"][..] };
    let required: Vec<&str> = ["name"].iter().chain(image).copied().collect();
    let Some(fields) = shape.object("$", body, FIELDS, &required) else { return };
    shape.text("$.name", fields.get("name"), 1);
    shape.text("$.image", fields.get("image"), 0);
    shape.text("$.args", fields.get("args"), 0);
    shape.text("$.templateId", fields.get("templateId"), 1);
    shape.integer("$.disk", fields.get("disk"), 1, u64::from(u32::MAX));
    shape.texts("$.ports", fields.get("ports"), "a port such as 22/tcp", |_| true);
    shape.text_map("$.env", fields.get("env"));
    shape.choice("$.cloud", fields.get("cloud"), &["SECURE", "COMMUNITY"]);
    shape.texts("$.dataCenterIds", fields.get("dataCenterIds"), "a data center id", |_| true);
    for name in ["globalNetworking", "startJupyter", "startSsh"] {
        shape.boolean(&format!("$.{name}"), fields.get(name));
    }
    if let Some(gpu) = fields.get("gpu") {
        let known = ["id", "count", "allowedCudaVersions", "minCudaVersion"];
        if let Some(gpu) = shape.object("$.gpu", gpu, &known, &["id"]) {
            let versions = gpu.get("allowedCudaVersions");
            shape.text("$.gpu.id", gpu.get("id"), 0);
            shape.integer("$.gpu.count", gpu.get("count"), 1, u64::from(u32::MAX));
            shape.texts("$.gpu.allowedCudaVersions", versions, "major.minor", is_version);
            shape.text("$.gpu.minCudaVersion", gpu.get("minCudaVersion"), 3);
        }
    }
    if let Some(cpu) = fields.get("cpu") {
        shape.object("$.cpu", cpu, &["id", "vcpuCount"], &["id", "vcpuCount"]);
    }
    let Some(mounts) = fields.get("mounts") else { return };
    let Some(mounts) = shape.object("$.mounts", mounts, &["persistent", "network"], &[]) else {
        return;
    };
    if let Some(disk) = mounts.get("persistent") {
        shape.object("$.mounts.persistent", disk, &["size", "path"], &["size", "path"]);
    }
    match mounts.get("network").map(Value::as_array) {
        None => {}
        Some(None) => shape.texts("$.mounts.network", mounts.get("network"), "a mount", |_| false),
        Some(Some(list)) => {
            shape.longest("$.mounts.network", list, 1);
            for mount in list {
                let path = "$.mounts.network[0]";
                let known = ["volumeId", "path"];
                if let Some(mount) = shape.object(path, mount, &known, &known) {
                    shape.text(&format!("{path}.volumeId"), mount.get("volumeId"), 0);
                    shape.text(&format!("{path}.path"), mount.get("path"), 0);
                }
            }
        }
    }
}

/// Where a pod is put.
pub struct Placement {
    pub gpu: &'static GpuType,
    pub count: u32,
    pub cloud: String,
    pub data_center: &'static DataCenter,
    pub cuda: &'static str,
    pub mount: Option<Mount>,
}

/// Places a pod, or refuses as the provider does: 400 for a broken rule and for a lack of machines.
pub fn place(twin: &Twin, document: &Document, body: &Body) -> Result<Placement, Problem> {
    let wanted = match (&body.gpu, &body.cpu) {
        (Some(gpu), None) => gpu,
        (None, Some(_)) => {
            return Err(Problem::bad_request("the local cloud has no CPU pods; send gpu"));
        }
        _ => return Err(Problem::bad_request("exactly one of gpu and cpu must be set")),
    };
    if !wanted.allowed_cuda_versions.is_empty() && wanted.min_cuda_version.is_some() {
        return Err(Problem::bad_request(
            "allowedCudaVersions and minCudaVersion are mutually exclusive",
        ));
    }
    // Two worlds that must not meet: what runs here is no container, and its environment is shown
    // in answers and kept on disk.
    if body.env.values().any(|value| value.contains("rpa_")) {
        return Err(Problem::bad_request(
            "env holds a real RunPod key; it does not belong into the local cloud",
        ));
    }
    let gpu = catalog::gpu(&wanted.id).ok_or_else(|| {
        let valid: Vec<&str> = GPU_TYPES.iter().map(|gpu| gpu.id).collect();
        Problem::bad_request(format!(
            "gpu.id {} is not known; valid ids: {}",
            wanted.id,
            valid.join(", ")
        ))
    })?;
    let cloud = body.cloud.clone().unwrap_or_else(|| "SECURE".to_owned());
    let mount = mount(twin, document, body, &cloud)?;
    // The live API refuses every create without a count, with the words for a lack of machines.
    let count = wanted.count.ok_or_else(Problem::no_capacity)?;
    let most = if cloud == "SECURE" { gpu.max_secure } else { gpu.max_community };
    if count > most {
        return Err(Problem::no_capacity());
    }
    let cuda = host(wanted).ok_or_else(Problem::no_capacity)?;
    let pinned = mount
        .as_ref()
        .and_then(|mount| document.volume(&mount.volume_id))
        .map(|volume| volume.data_center.as_str());
    let data_center = center(body, gpu, pinned)?;
    Ok(Placement { gpu, count, cloud, data_center, cuda, mount })
}

/// The oldest host that will do.
fn host(wanted: &Gpu) -> Option<&'static str> {
    let number = |version: &str| -> Option<(u32, u32)> {
        let (major, minor) = version.split_once('.')?;
        Some((major.parse().ok()?, minor.parse().ok()?))
    };
    let least = wanted.min_cuda_version.as_deref().map(number);
    HOSTS.iter().map(|(version, _)| *version).find(|version| {
        let allowed = &wanted.allowed_cuda_versions;
        (allowed.is_empty() || allowed.iter().any(|one| one == version))
            && least.is_none_or(|least| number(version) >= least)
    })
}

fn center(
    body: &Body,
    gpu: &GpuType,
    pinned: Option<&str>,
) -> Result<&'static DataCenter, Problem> {
    if let Some(unknown) = body.data_center_ids.iter().find(|id| catalog::data_center(id).is_none())
    {
        let valid: Vec<&str> = DATA_CENTERS.iter().map(|center| center.id).collect();
        return Err(Problem::bad_request(format!(
            "data center {unknown} is not known; valid data centers: {}",
            valid.join(", ")
        )));
    }
    DATA_CENTERS
        .iter()
        .filter(|center| {
            let listed = &body.data_center_ids;
            (listed.is_empty() || listed.iter().any(|id| id == center.id))
                && pinned.is_none_or(|id| id == center.id)
        })
        .filter(|center| center.stock(gpu.id) > Stock::None)
        .max_by_key(|center| center.stock(gpu.id))
        .ok_or_else(Problem::no_capacity)
}

fn mount(
    twin: &Twin,
    document: &Document,
    body: &Body,
    cloud: &str,
) -> Result<Option<Mount>, Problem> {
    let Some(mounts) = &body.mounts else { return Ok(None) };
    if mounts.persistent.is_some() {
        return Err(Problem::bad_request(
            "the local cloud has no persistent mounts; mount a network volume",
        ));
    }
    let Some(mount) = mounts.network.first() else { return Ok(None) };
    if document.volume(&mount.volume_id).is_none() {
        return Err(Problem::bad_request(format!("network volume {} not found", mount.volume_id)));
    }
    if cloud != "SECURE" {
        return Err(Problem::bad_request("network volumes are available in SECURE cloud only"));
    }
    check_mount_path(twin, &mount.path)?;
    Ok(Some(mount.clone()))
}

/// A local pod is no container, so a mount path lies below `<state>/mnt`, where nothing else of the
/// machine is in its way.
fn check_mount_path(twin: &Twin, text: &str) -> Result<(), Problem> {
    if twin.paths.mount_point(text).is_some() {
        return Ok(());
    }
    Err(Problem::bad_request(format!(
        "mount path {text} cannot be had in the local cloud, whose pods are folders on this \
         machine; use a path below {}/",
        twin.paths.mounts().display()
    )))
}

/// Refuses a mount path at which another pod that is not stopped has its volume.
pub fn check_mount_is_free(
    twin: &Twin,
    document: &Document,
    id: &str,
    mount: &Mount,
) -> Result<(), Problem> {
    let point = twin.paths.mount_point(&mount.path);
    let user = document.pods.iter().find(|pod| {
        pod.id != id
            && pod.status != Status::Exited
            && pod.mount.as_ref().is_some_and(|other| twin.paths.mount_point(&other.path) == point)
    });
    user.map_or(Ok(()), |pod| {
        Err(Problem::bad_request(format!(
            "mount path {} is in use by pod {}; pods of the local cloud share one file system",
            mount.path, pod.id
        )))
    })
}
