//! The config as its user meets it: what is refused and in which words, what the defaults are,
//! which layer wins.

use podtether::config::{
    self, CloudChoice, Config, ConfigError, Environment, FuseHours, Notify, WebhookShape,
    check_identity,
};
use podtether::domain::{BudgetWindow, Limits, Template, Usd, UsdPerHour, Vehicle, VehicleName};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

const HOME: &str = "/home/ann";

/// The least that a vehicle must have; lines 2 to 7.
const VEHICLE: &str = "\
vehicles:
  sub:
    pod_name: sub
    network_volume_name: sub
    datacenter_preference: [EU-RO-1]
    known_hosts_file: known_hosts
    local_log_dir: logs
";

fn env() -> Environment {
    Environment::isolated([("HOME", HOME)])
}

fn load_with(text: &str, env: &Environment) -> (TempDir, Result<Config, ConfigError>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("podtether.yaml");
    std::fs::write(&path, text).unwrap();
    let loaded = config::load(&path, env);
    (folder, loaded)
}

fn good(text: &str) -> Config {
    load_with(text, &env()).1.unwrap_or_else(|error| panic!("{error}\n---\n{text}"))
}

/// The messages without the folder, one line each.
fn refused(text: &str) -> String {
    let (folder, loaded) = load_with(text, &env());
    let error = loaded.err().unwrap_or_else(|| panic!("accepted:\n{text}"));
    error.to_string().replace(&format!("{}/", folder.path().display()), "")
}

/// A file of one vehicle whose first line is `line`.
fn with_line(line: &str) -> String {
    format!("{line}\n{VEHICLE}")
}

fn usd(text: &str) -> Usd {
    Usd::from_decimal(text).unwrap()
}

/// Every default of the contract.
#[test]
fn defaults_are_those_of_the_contract() {
    let config = good(VEHICLE);
    let vehicle = config.vehicle(None).unwrap();
    let shown = [
        ("cloud_type", vehicle.cloud_type.to_string(), "SECURE"),
        (
            "gpu_type_ids",
            format!("{:?}", vehicle.gpu_type_ids),
            r#"[GpuTypeId("NVIDIA GeForce RTX 4090")]"#,
        ),
        ("gpu_count", vehicle.gpu_count.to_string(), "1"),
        (
            "image_name",
            vehicle.image_name.clone(),
            "runpod/pytorch:2.4.0-py3.11-cuda12.4.1-devel-ubuntu22.04",
        ),
        (
            "allowed_cuda_versions",
            vehicle.allowed_cuda_versions.join(" "),
            "12.4 12.5 12.6 12.7 12.8",
        ),
        ("container_disk_gb", vehicle.container_disk_gb.to_string(), "30"),
        ("volume_mount_path", vehicle.volume_mount_path.clone(), "/workspace"),
        ("network_volume_gb", vehicle.network_volume_gb.to_string(), "60"),
        ("ports", vehicle.ports.join(" "), "22/tcp"),
        ("ssh_identity", vehicle.ssh_identity.display().to_string(), "/home/ann/.ssh/id_ed25519"),
        ("idle_minutes", (vehicle.idle.as_secs() / 60).to_string(), "60"),
        ("timeouts.setup_sec", vehicle.timeouts.setup.as_secs().to_string(), "5400"),
        ("timeouts.training_sec", vehicle.timeouts.training.as_secs().to_string(), "3600"),
        ("timeouts.sweep_sec", vehicle.timeouts.sweep.as_secs().to_string(), "3600"),
        ("timeouts.job_sec", vehicle.timeouts.job.as_secs().to_string(), "3600"),
        ("timeouts.exec_max_sec", vehicle.timeouts.exec_max_sec.to_string(), "600"),
        ("poll.budget_sec", vehicle.poll_budget.as_secs().to_string(), "300"),
        ("poll.interval_sec", vehicle.poll_interval.as_secs().to_string(), "10"),
        ("boot_max_sec", vehicle.boot_max.as_secs().to_string(), "900"),
        ("min_driver_version", vehicle.min_driver_version.clone(), "535.129.03"),
    ];
    for (key, found, expected) in shown {
        assert_eq!(found, expected, "{key}");
    }
    assert_eq!(config.limits, Limits { max_boots_per_hour: Some(6), ..Limits::default() });
    assert_eq!(config.auto_arm, FuseHours::After(Duration::from_secs(3 * 3600)));
    assert_eq!(config.cloud, CloudChoice::RunPod);
    assert_eq!(config.tolerated_pods, Vec::<String>::new());
    assert_eq!(config.keychain_account, None);
    assert_eq!(config.default_vehicle.0, "sub");
}

/// The kind of fault: a misspelt limit is no limit. The whole message, with line and nearest name.
#[test]
fn an_unknown_key_is_refused_with_its_line_and_what_was_meant() {
    for (line, message) in [
        ("gpu_cuont: 2", "1: gpu_cuont: unknown key; did you mean gpu_count?"),
        ("limit: {budget_usd: 5}", "1: limit: unknown key; did you mean limits?"),
        (
            "limits: {budget: 5}",
            "1: limits.budget: unknown key; known here: budget_usd, budget_window, max_boots_per_hour, max_usd_per_hour, max_usd_per_job, max_gpu_count",
        ),
        (
            "limits: {max_usd_per_huor: 5}",
            "1: limits.max_usd_per_huor: unknown key; did you mean max_usd_per_hour?",
        ),
        ("max_usd_per_hour: 5", "1: max_usd_per_hour: unknown key; it belongs under limits"),
        ("training_sec: 5", "1: training_sec: unknown key; it belongs under timeouts"),
        (
            "timeouts: {boot_max_sec: 5}",
            "1: timeouts.boot_max_sec: unknown key; it belongs one level up, beside timeouts",
        ),
        (
            "fuse: {auto_arm_hour: 5}",
            "1: fuse.auto_arm_hour: unknown key; did you mean auto_arm_hours?",
        ),
        ("pod_name: x", "1: pod_name: unknown key; it belongs inside each vehicle, under vehicles"),
        (
            "strangers: {tolerated: [x]}",
            "1: strangers.tolerated: unknown key; did you mean tolerate?",
        ),
        ("local: {state: x}", "1: local.state: unknown key; known here: state_dir"),
        (
            "trainings: {t: {vehicle: sub, vehicel: sub}}",
            "1: trainings.t.vehicel: unknown key; did you mean vehicle?",
        ),
        ("<<: {gpu_count: 2}", "1: <<: unknown key; known here:"),
        (
            "runpod_api_key: MARKER",
            "1: runpod_api_key: unknown key; secrets are never kept in this file; use the keychain or RUNPOD_API_KEY",
        ),
    ] {
        let found = refused(&with_line(line));
        assert!(found.starts_with(&format!("podtether.yaml:{message}")), "{line}\n{found}");
        assert_eq!(found.lines().count(), 1, "{found}");
        assert!(!found.contains("MARKER"), "{found}");
    }
    let own = |line: &str| refused(&format!("{VEHICLE}    {line}\n"));
    for (line, message) in [
        ("gpu_cuont: 2", "8: vehicles.sub.gpu_cuont: unknown key; did you mean gpu_count?"),
        (
            "budget_usd: 5",
            "8: vehicles.sub.budget_usd: unknown key; it holds for all vehicles; put it under limits at the top",
        ),
        (
            "limits: {budget_usd: 5}",
            "8: vehicles.sub.limits.budget_usd: unknown key; it holds for all vehicles; put it under limits at the top",
        ),
        (
            "cloud: local",
            "8: vehicles.sub.cloud: unknown key; it holds for all vehicles; put it at the top",
        ),
    ] {
        assert_eq!(own(line), format!("podtether.yaml:{message}"));
    }
}

#[test]
fn a_repeated_key_is_refused_with_both_lines() {
    for (text, message) in [
        (
            format!("gpu_count: 1\n{VEHICLE}gpu_count: 2\n"),
            "9: gpu_count: given twice, first on line 1; keep one of them",
        ),
        (
            format!("timeouts:\n  job_sec: 1\n  job_sec: 2\n{VEHICLE}"),
            "3: timeouts.job_sec: given twice, first on line 2; keep one of them",
        ),
        (
            format!("{VEHICLE}    pod_name: other\n"),
            "8: vehicles.sub.pod_name: given twice, first on line 3; keep one of them",
        ),
        (
            format!("{VEHICLE}  sub: {{}}\n"),
            "8: vehicles.sub: given twice, first on line 2; keep one of them",
        ),
    ] {
        assert_eq!(refused(&text), format!("podtether.yaml:{message}"));
    }
}

/// A21: no value of a ceiling or of an idle time can mean "unlimited" without saying so.
#[test]
fn a_whole_number_with_a_wrong_unit_is_refused_with_what_would_do() {
    let keys = [
        ("idle_minutes", " of minutes", "1", "10080", "60"),
        ("boot_max_sec", " of seconds", "1", "7200", "900"),
        ("timeouts.setup_sec", " of seconds", "1", "604800", "5400"),
        ("timeouts.training_sec", " of seconds", "1", "604800", "3600"),
        ("timeouts.sweep_sec", " of seconds", "1", "604800", "3600"),
        ("timeouts.job_sec", " of seconds", "1", "604800", "3600"),
        ("timeouts.exec_max_sec", " of seconds", "1", "3600", "600"),
        ("poll.budget_sec", " of seconds", "1", "7200", "300"),
        ("poll.interval_sec", " of seconds", "1", "300", "10"),
        ("gpu_count", "", "1", "64", "1"),
        ("container_disk_gb", " of GB", "1", "10000", "30"),
        ("network_volume_gb", " of GB", "10", "4096", "60"),
        ("limits.max_gpu_count", "", "1", "64", "1"),
        ("limits.max_boots_per_hour", "", "1", "1000", "6"),
    ];
    for (key, unit, min, max, example) in keys {
        let line = |value: &str| match key.split_once('.') {
            Some((group, name)) => format!("{group}: {{{name}: {value}}}"),
            None => format!("{key}: {value}"),
        };
        for value in [
            "off",
            "-1",
            "0",
            "1.5",
            "1e3",
            "010",
            "0x10",
            "1_0",
            "true",
            "none",
            "unlimited",
            "\"\"",
            ".inf",
            ".nan",
            "99999999999999999999",
        ] {
            let message = refused(&with_line(&line(value)));
            assert_eq!(
                message.split("; ").next().unwrap(),
                format!(
                    "podtether.yaml:1: {key}: {value} is not a whole number{unit} from {min} to {max}"
                ),
            );
            // Where the text cannot be converted, an example that would do is named.
            if value != "010" && value != "1_0" {
                let would_do = format!("write for example {example}, or leave the key out");
                assert!(message.ends_with(&would_do), "{message}");
            }
        }
        let message = refused(&with_line(&line("")));
        let would_do = format!("write for example {example}, or leave the key out");
        assert_eq!(message, format!("podtether.yaml:1: {key}: has no value; {would_do}"));
        let message = refused(&with_line(&line("null")));
        assert_eq!(message, format!("podtether.yaml:1: {key}: has no value; {would_do}"));
        assert!(refused(&with_line(&line("[1]"))).contains("a list is not a whole number"));
        good(&with_line(&line(min)).replace("gpu_count: 64", "gpu_count: 1"));
    }
}

#[test]
fn a_text_with_a_unit_is_answered_with_the_number_that_was_meant() {
    for (line, fix) in [
        ("timeouts: {job_sec: 60min}", "write 3600"),
        ("timeouts: {job_sec: \"1h\"}", "write 3600"),
        ("timeouts: {job_sec: 2 d}", "write 172800"),
        ("timeouts: {job_sec: \"3600\"}", "write 3600"),
        ("timeouts: {job_sec: 30d}", "write for example 3600, or leave the key out"),
        ("idle_minutes: 1h", "write 60"),
        ("idle_minutes: 90s", "write for example 60, or leave the key out"),
        ("container_disk_gb: 30GB", "write 30"),
        ("network_volume_gb: 1TB", "write 1000"),
        ("gpu_count: \"2\"", "write 2"),
    ] {
        let message = refused(&with_line(line));
        assert!(message.ends_with(&format!("; {fix}")), "{line}: {message}");
    }
}

/// Money goes from the text to integer micro-dollars; nothing else is an amount.
#[test]
fn money_is_read_exactly_or_refused() {
    for (key, example) in
        [("budget_usd", "174"), ("max_usd_per_hour", "0.80"), ("max_usd_per_job", "5")]
    {
        for value in [
            "$5", "\"$5\"", "\"5\"", "5 USD", "1,5", "-1", "0", "0.0", ".nan", ".inf", "-.inf",
            "nan", "inf", "off", "none", "true", "1e99", "0x10", "1_000",
        ] {
            let message = refused(&with_line(&format!("limits:\n  {key}: {value}")));
            let what = format!("limits.{key}: {value} is not a positive number of US dollars");
            assert_eq!(message, format!("podtether.yaml:2: {what}; write for example {example}"));
        }
        let message = refused(&with_line(&format!("limits:\n  {key}:")));
        assert!(
            message.starts_with(&format!("podtether.yaml:2: limits.{key}: has no value")),
            "{message}"
        );
    }
    let limits = good(&with_line(
        "limits: {budget_usd: 174, max_usd_per_hour: 0.80, max_usd_per_job: 4.0000001}",
    ))
    .limits;
    assert_eq!(limits.budget_usd, Some(usd("174")));
    assert_eq!(limits.max_usd_per_hour, Some(UsdPerHour::new(Usd::from_micros(800_000))));
    assert_eq!(limits.max_usd_per_job, Some(Usd::from_micros(4_000_001)));
}

#[test]
fn a_budget_counts_in_the_total_the_month_or_the_day() {
    assert_eq!(good(VEHICLE).limits.budget_window, BudgetWindow::Total);
    for window in BudgetWindow::ALL {
        let config =
            good(&with_line(&format!("limits: {{budget_usd: 5, budget_window: {window}}}")));
        assert_eq!(config.limits.budget_window, window);
        // A vehicle's own limits do not change what the budget counts.
        let own = format!(
            "limits: {{budget_window: {window}}}\n{VEHICLE}    limits: {{max_usd_per_job: 1}}\n"
        );
        let limits = good(&own).limits_for(&VehicleName("sub".to_owned()));
        assert_eq!((limits.budget_window, limits.max_usd_per_job), (window, Some(usd("1"))));
    }
    for value in ["week", "Month", "30d", "1e9"] {
        let message = refused(&with_line(&format!("limits: {{budget_window: {value}}}")));
        assert!(
            message.ends_with("is not a window; write total, month or day"),
            "{value}: {message}"
        );
    }
    let message = refused(&format!("{VEHICLE}    limits: {{budget_window: day}}\n"));
    assert!(message.contains("it holds for all vehicles"), "{message}");
}

/// What holds is not said to be for a later version.
#[test]
fn no_limit_is_announced_as_not_acted_on() {
    let config = good(&with_line("limits: {budget_usd: 1e9, max_usd_per_job: 5}"));
    assert_eq!(config.not_yet, Vec::<&str>::new());
    assert_eq!(config.limits.budget_usd, Some(usd("1000000000")));
}

/// A21: the fuse is a finite time or `off`, in so many words.
#[test]
fn the_fuse_takes_hours_or_off_and_nothing_else() {
    for value in [
        "-1", "0", "3h", "\"3\"", "169", ".inf", ".nan", "true", "false", "no", "never", "Off",
        "1e9",
    ] {
        let message = refused(&with_line(&format!("fuse: {{auto_arm_hours: {value}}}")));
        let what = format!("{value} is not a number of hours above 0 and up to 168");
        assert_eq!(
            message,
            format!(
                "podtether.yaml:1: fuse.auto_arm_hours: {what}; write hours such as 3.0, or off"
            )
        );
    }
    let fuse =
        |value: &str| good(&with_line(&format!("fuse: {{auto_arm_hours: {value}}}"))).auto_arm;
    assert_eq!(fuse("0.5"), FuseHours::After(Duration::from_secs(1800)));
    assert_eq!(fuse("168"), FuseHours::After(Duration::from_secs(7 * 24 * 3600)));
    assert_eq!(fuse("1e-9"), FuseHours::After(Duration::from_millis(1)));
    assert_eq!(fuse("off"), FuseHours::Off);
    let warnings = good(&with_line("fuse: {auto_arm_hours: off}")).warnings;
    assert!(warnings.iter().any(|w| w.contains("auto_arm_hours is off")), "{warnings:?}");
}

#[test]
fn a_text_that_breaks_its_rule_is_refused_with_one_that_would_do() {
    for (line, message) in [
        (
            "cloud: aws",
            "cloud: aws is not a cloud; write runpod, or local for the twin on this machine",
        ),
        (
            "cloud_type: COMMUNITY",
            "cloud_type: COMMUNITY breaks the rule is_in_the_secure_cloud: network volumes exist nowhere else; write SECURE, or leave the key out",
        ),
        (
            "cloud_type: secure",
            "cloud_type: secure is not a cloud tier; write SECURE, or leave the key out",
        ),
        (
            "gpu_type_ids: []",
            "gpu_type_ids: is empty; write for example [\"NVIDIA GeForce RTX 4090\"]",
        ),
        ("gpu_type_ids: NVIDIA L4", "gpu_type_ids: NVIDIA L4 is not a list; write [NVIDIA L4]"),
        ("gpu_type_ids: [a, \"\"]", "gpu_type_ids[1]: \"\" is empty; give a text"),
        ("gpu_type_ids: [a, b, a]", "gpu_type_ids[2]: a is listed twice; keep one of them"),
        (
            "allowed_cuda_versions: [12.4, \"12\"]",
            "allowed_cuda_versions[1]: \"12\" is not a CUDA version; write for example \"12.4\"",
        ),
        (
            "min_driver_version: latest",
            "min_driver_version: latest is not a driver version; write for example \"535.129.03\"",
        ),
        (
            "ports: [22/tcp, 8888]",
            "ports[1]: 8888 is not a port with its protocol; write 8888/tcp or 8888/http",
        ),
        (
            "ports: [22/tcp, 99999/tcp]",
            "ports[1]: 99999/tcp is not a port with its protocol; write for example 22/tcp",
        ),
        (
            "ports: [8888/http]",
            "ports: has no 22/tcp, so there would be no SSH; write [\"22/tcp\", \"8888/http\"]",
        ),
        (
            "volume_mount_path: workspace",
            "volume_mount_path: workspace is not an absolute path; write for example /workspace",
        ),
        (
            "volume_mount_path: /",
            "volume_mount_path: / would hide the pod's whole file system; write for example /workspace",
        ),
        ("volume_mount_path: /a/..", "volume_mount_path: /a/.. is not normalised; write /a"),
        (
            "volume_mount_path: /workspace/",
            "volume_mount_path: /workspace/ is not normalised; write /workspace",
        ),
        ("image_name: a b", "image_name: a b contains white space; write ab"),
        (
            "keychain_account: \" ann\"",
            "keychain_account: \" ann\" has white space around it; write \"ann\"",
        ),
        (
            "keychain_account: -w",
            "keychain_account: -w starts with '-'; write the login name, or leave the key out",
        ),
        (
            "labels: {group: a b}",
            "labels.group: a b is no label; use up to 64 letters, digits and any of . _ - / : @ +, starting with a letter or digit, for example a-b",
        ),
        (
            "default_vehicle: subb",
            "default_vehicle: subb is not a declared vehicle; did you mean sub?",
        ),
        (
            "trainings: {t: {vehicle: bus}}",
            "trainings.t.vehicle: bus is not a declared vehicle; known here: sub",
        ),
        ("trainings: {t: {}}", "trainings.t.vehicle: is missing; name one of: sub"),
        (
            "trainings: {t: sub}",
            "trainings.t: sub is not a mapping; write `key: value` lines under it, or leave it out",
        ),
        (
            "strangers: ignore",
            "strangers: ignore is not a way to treat strangers; write refuse, or {tolerate: [name of a pod]}",
        ),
        (
            "strangers: {tolerate: [sub]}",
            "strangers.tolerate: sub is the pod of vehicle sub, no stranger; leave it out of the list",
        ),
        (
            "ssh_identity: ~bob/key",
            "ssh_identity: ~bob/key names another user's home, which is not looked up; write ~/… for your own home or an absolute path",
        ),
        (
            "timeouts: 60",
            "timeouts: 60 is not a mapping; write `key: value` lines under it, or leave it out",
        ),
        (
            "notify: true",
            "notify: true is not a mapping; write `key: value` lines under it, or leave it out",
        ),
        (
            "notify: {desktop: yes}",
            "notify.desktop: yes is neither true nor false; write true or false",
        ),
        (
            "notify: {webhook: https://ntfy.sh/MARKER}",
            "notify.webhook: an address (not shown) is not a kind of webhook; write ntfy or slack; the address is a secret and is kept in the keychain or in PODTETHER_WEBHOOK_URL, never in this file",
        ),
        (
            "notify: {webhook_url: https://ntfy.sh/MARKER}",
            "notify.webhook_url: unknown key; the address is a secret and is kept in the keychain or in PODTETHER_WEBHOOK_URL, never in this file",
        ),
        (
            "image_name: rpa_ABCDEFGH1234 x",
            "image_name: [secret] x contains white space; write rpa_",
        ),
    ] {
        let found = refused(&with_line(line));
        if line.contains("rpa_") {
            assert!(!found.contains("ABCDEFGH"), "{found}");
        } else {
            assert_eq!(found, format!("podtether.yaml:1: {message}"));
        }
    }
}

#[test]
fn a_vehicle_has_everything_of_its_own() {
    for (gone, example) in [
        ("pod_name", "my-pod"),
        ("network_volume_name", "my-volume"),
        ("datacenter_preference", "[EU-RO-1, US-TX-3]"),
        ("known_hosts_file", "~/.ssh/known_hosts_runpod"),
        ("local_log_dir", "logs/pod"),
    ] {
        let text: String =
            VEHICLE.lines().filter(|line| !line.contains(gone)).flat_map(|l| [l, "\n"]).collect();
        let message = format!(
            "podtether.yaml:2: vehicles.sub.{gone}: is missing; write for example {gone}: {example}"
        );
        assert_eq!(refused(&text), message);
    }
    for (text, message) in [
        ("", "podtether.yaml: vehicles: is missing; declare at least one vehicle under it"),
        (
            "# nothing\n",
            "podtether.yaml: vehicles: is missing; declare at least one vehicle under it",
        ),
        (
            "vehicles: {}",
            "podtether.yaml:1: vehicles: is empty; declare at least one vehicle under it",
        ),
        ("vehicles:", "podtether.yaml:1: vehicles: has no value; write for example"),
        ("- a", "podtether.yaml:1: the file: a list is not a mapping;"),
    ] {
        assert!(refused(text).contains(message), "{}", refused(text));
    }
    let named = |name: &str| refused(&VEHICLE.replace("  sub:", &format!("  {name}:")));
    for name in ["../x", "a b", "-a", "\"\""] {
        assert!(named(name).contains("is not a name; use up to 64"), "{}", named(name));
    }
    let pod = refused(&VEHICLE.replace("pod_name: sub", "pod_name: \"a$(id)\""));
    assert!(
        pod.starts_with("podtether.yaml:3: vehicles.sub.pod_name: \"a$(id)\" contains '$';"),
        "{pod}"
    );
    let center = refused(&VEHICLE.replace("EU-RO-1", "eu_ro_1"));
    assert!(
        center.ends_with("eu_ro_1 is not a data centre's id; write for example EU-RO-1"),
        "{center}"
    );
}

fn two(second: &[(&str, &str)]) -> String {
    let mut text = VEHICLE.to_owned() + "  bus:\n";
    for (key, value) in [
        ("pod_name", "bus"),
        ("network_volume_name", "bus"),
        ("datacenter_preference", "[EU-RO-1]"),
        ("known_hosts_file", "bus_hosts"),
        ("local_log_dir", "logs/bus"),
    ] {
        let value = second.iter().find(|(other, _)| *other == key).map_or(value, |(_, own)| own);
        text.push_str(&format!("    {key}: {value}\n"));
    }
    text
}

#[test]
fn two_vehicles_never_share_what_is_one_per_vehicle() {
    assert_eq!(good(&two(&[])).vehicles.len(), 2);
    for (key, value, line) in [
        ("pod_name", "sub", 9),
        ("network_volume_name", "sub", 10),
        ("known_hosts_file", "./x/../Known_Hosts", 12),
        ("local_log_dir", "logs/", 13),
    ] {
        assert_eq!(
            refused(&two(&[(key, value)])),
            format!(
                "podtether.yaml:{line}: vehicles.bus.{key}: is the same as vehicles.sub.{key}; give each vehicle its own"
            )
        );
    }
}

#[test]
fn everything_that_is_wrong_is_told_at_once_in_the_files_order() {
    let message = refused(&format!("gpu_count: 0\nlimits: {{budget: 1}}\n{VEHICLE}    prots: x\n"));
    let lines: Vec<&str> = message.lines().map(|l| l.split(' ').take(2).last().unwrap()).collect();
    assert_eq!(lines, ["gpu_count:", "limits.budget:", "vehicles.sub.prots:"], "{message}");
    // A shared key that is wrong for two vehicles is told once.
    let message = refused(&format!("ports: [80/http]\n{}", two(&[])));
    assert_eq!(message.lines().count(), 1, "{message}");
}

#[test]
fn a_vehicles_own_key_goes_before_the_shared_one_before_the_default() {
    let text = format!(
        "gpu_count: 2\ntimeouts: {{job_sec: 7}}\n{}    gpu_count: 3\n    timeouts: {{sweep_sec: 8}}\n",
        two(&[])
    );
    let config = good(&text);
    let seen = |name: &str| {
        let vehicle = config.vehicle(Some(name)).unwrap();
        let timeouts = &vehicle.timeouts;
        (
            vehicle.gpu_count,
            timeouts.job.as_secs(),
            timeouts.sweep.as_secs(),
            timeouts.setup.as_secs(),
        )
    };
    assert_eq!(seen("sub"), (2, 7, 3600, 5400));
    assert_eq!(seen("bus"), (3, 7, 8, 5400));
}

/// No layer loosens a limit that another one set.
#[test]
fn the_tighter_limit_wins() {
    let text = |shared: &str, own: &str| {
        format!(
            "limits: {{max_usd_per_hour: {shared}, budget_usd: 9}}\n{VEHICLE}    limits: {{max_usd_per_hour: {own}, max_usd_per_job: 2}}\n"
        )
    };
    for (shared, own) in [("0.50", "0.80"), ("0.80", "0.50"), ("0.5", "0.5")] {
        let config = good(&text(shared, own));
        let limits = config.limits_for(&VehicleName("sub".to_owned()));
        assert_eq!(limits.max_usd_per_hour, Some(UsdPerHour::new(usd("0.5"))), "{shared} {own}");
        assert_eq!(limits.budget_usd, Some(usd("9")));
        assert_eq!(limits.max_usd_per_job, Some(usd("2")));
        assert_eq!(config.limits_for(&VehicleName("other".to_owned())), config.limits);
    }
    let message = refused(&format!("limits: {{max_gpu_count: 1}}\n{VEHICLE}    gpu_count: 2\n"));
    assert_eq!(
        message,
        "podtether.yaml:9: vehicles.sub.gpu_count: 2 is above limits.max_gpu_count 1; write 1 or less, or raise the limit"
    );
}

#[test]
fn a_vehicle_typo_is_answered_with_the_nearest_name() {
    let config = good(&two(&[]));
    assert_eq!(config.vehicle(None).unwrap().name.0, "sub");
    assert_eq!(config.vehicle(Some("bus")).unwrap().name.0, "bus");
    let message = |name: &str| config.vehicle(Some(name)).unwrap_err().to_string();
    assert!(message("subs").starts_with("no vehicle \"subs\" in /"), "{}", message("subs"));
    assert!(message("subs").ends_with("; did you mean sub?"));
    assert!(message("SUB").ends_with("; did you mean sub?"));
    assert!(message("hippocampus").ends_with("; known here: sub, bus"));
    let other = good(&format!("default_vehicle: bus\n{}", two(&[])));
    assert_eq!(other.vehicle(None).unwrap().name.0, "bus");
}

#[test]
fn paths_are_relative_to_the_file_and_a_tilde_is_the_given_home() {
    let text = VEHICLE.replace("known_hosts_file: known_hosts", "known_hosts_file: ~/.ssh/kh");
    let (folder, config) = load_with(&text, &env());
    let config = config.unwrap();
    let vehicle = config.vehicle(None).unwrap();
    assert_eq!(vehicle.known_hosts_file, Path::new(HOME).join(".ssh/kh"));
    assert_eq!(vehicle.local_log_dir, folder.path().join("logs"));
    assert_eq!(config.path, folder.path().join("podtether.yaml"));
    let homeless = load_with(&text, &Environment::default()).1.unwrap_err().to_string();
    assert!(homeless.contains("vehicles.sub.known_hosts_file: ~/.ssh/kh needs HOME"), "{homeless}");
}

#[test]
fn the_local_cloud_has_a_folder_and_mounts_inside_it() {
    let text = with_line("cloud: local");
    let env = Environment::isolated([("HOME", HOME), ("PODTETHER_STATE_DIR", "/state")]);
    let config = load_with(&text, &env).1.unwrap();
    assert_eq!(config.cloud, CloudChoice::Local { state_dir: PathBuf::from("/state/local") });
    assert_eq!(config.vehicles[0].volume_mount_path, "/state/local/mnt/sub/workspace");
    assert_eq!(config.warnings, Vec::<String>::new());
    let (folder, config) = load_with(&with_line("cloud: local\nlocal: {state_dir: twin}"), &env);
    let state_dir = folder.path().join("twin");
    assert_eq!(config.unwrap().cloud, CloudChoice::Local { state_dir });
    let homeless = Environment::default();
    let text = text.replace("cloud: local", "cloud: local\nssh_identity: /k");
    let message = load_with(&text, &homeless).1.unwrap_err().to_string();
    assert!(message.contains("local.state_dir: has no default"), "{message}");
}

#[test]
fn strangers_are_refused_unless_they_are_named() {
    assert_eq!(good(&with_line("strangers: refuse")).tolerated_pods, Vec::<String>::new());
    let config = good(&with_line("strangers: {tolerate: [my other pod, 42]}"));
    assert_eq!(config.tolerated_pods, ["my other pod", "42"]);
}

#[test]
fn people_are_told_where_the_file_says_and_else_nowhere() {
    assert_eq!(good(VEHICLE).notify, Notify::default());
    assert_eq!(good(&with_line("notify: {}")).notify, Notify::default());
    let notify = good(&with_line("notify: {desktop: true, webhook: slack}")).notify;
    assert_eq!(notify, Notify { desktop: true, webhook: Some(WebhookShape::Slack) });
    let notify = good(&with_line("notify: {desktop: false, webhook: ntfy}")).notify;
    assert_eq!(notify, Notify { desktop: false, webhook: Some(WebhookShape::Ntfy) });
}

#[test]
fn a_careless_config_is_warned_about() {
    let warnings = good(&with_line("gpu_count: 1")).warnings;
    for word in ["max_usd_per_hour", "budget_usd"] {
        assert!(warnings.iter().any(|warning| warning.contains(word)), "{warnings:?}");
    }
    let careful = "limits: {max_usd_per_hour: 1, budget_usd: 10}";
    assert_eq!(good(&with_line(careful)).warnings, Vec::<String>::new());
}

#[test]
fn what_is_no_yaml_or_no_text_is_told_with_file_and_line() {
    let message = refused("vehicles:\n  sub: [1, 2\nx: 3\n");
    assert!(message.contains("podtether.yaml:") && message.contains("not YAML"), "{message}");
    assert!(refused(&format!("{VEHICLE}---\n{VEHICLE}")).contains("not YAML"));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("podtether.yaml");
    std::fs::write(&path, b"a: \xff\xfe").unwrap();
    assert!(config::load(&path, &env()).unwrap_err().to_string().contains("not UTF-8"));
    std::fs::write(&path, vec![b'#'; (1 << 20) + 1]).unwrap();
    assert!(config::load(&path, &env()).unwrap_err().to_string().contains("1 MiB"));
    let gone = config::load(&folder.path().join("no.yaml"), &env()).unwrap_err().to_string();
    assert!(gone.contains("no.yaml") && gone.contains("No such file"), "{gone}");
}

/// Flag, then variable, then the nearest file upwards; a named file is never replaced.
#[test]
fn each_layer_of_finding_the_file_goes_before_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let (root, deep) = (folder.path(), folder.path().join("a/b"));
    std::fs::create_dir_all(&deep).unwrap();
    for file in ["flag.yaml", "variable.yaml", "podtether.yaml"] {
        std::fs::write(root.join(file), VEHICLE).unwrap();
    }
    let variable = root.join("variable.yaml");
    let env = Environment::isolated([("PODTETHER_CONFIG", variable.as_os_str())]);
    let none = Environment::default();
    let flag = root.join("flag.yaml");
    assert_eq!(config::find(Some(&flag), &env, &deep).unwrap(), flag);
    assert_eq!(
        config::find(Some(Path::new("../../flag.yaml")), &env, &deep)
            .unwrap()
            .canonicalize()
            .unwrap(),
        flag.canonicalize().unwrap()
    );
    assert_eq!(config::find(None, &env, &deep).unwrap(), variable);
    assert_eq!(config::find(None, &none, &deep).unwrap(), root.join("podtether.yaml"));
    let gone = config::find(Some(&root.join("gone.yaml")), &env, &deep).unwrap_err().to_string();
    assert!(gone.contains("gone.yaml (from --config): there is no such file"), "{gone}");
    let gone = Environment::isolated([("PODTETHER_CONFIG", "gone.yaml")]);
    let gone = config::find(None, &gone, root).unwrap_err().to_string();
    assert!(gone.contains("(from PODTETHER_CONFIG)"), "{gone}");
    let folder = config::find(Some(root), &none, root).unwrap_err().to_string();
    assert!(folder.contains("it is a folder"), "{folder}");
    let empty = tempfile::tempdir().unwrap();
    let missing = config::find(None, &none, empty.path()).unwrap_err().to_string();
    assert!(missing.contains("examples/") && missing.contains("--config"), "{missing}");
}

fn with_identity(path: &Path) -> Vehicle {
    let mut vehicle = good(VEHICLE).vehicles.remove(0);
    vehicle.ssh_identity = path.to_owned();
    vehicle
}

/// With a key that the real `ssh-keygen` made.
#[test]
fn a_key_file_that_cannot_work_is_refused_before_anything_is_started() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("id");
    let mode =
        |mode| std::fs::set_permissions(&key, std::fs::Permissions::from_mode(mode)).unwrap();
    let refusal = |path: &Path| check_identity(&with_identity(path)).unwrap_err().to_string();
    assert!(
        refusal(&key).contains("there is no such file; make one with `ssh-keygen"),
        "{}",
        refusal(&key)
    );
    let made = std::process::Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-f"])
        .arg(&key)
        .status()
        .unwrap();
    assert!(made.success());
    check_identity(&with_identity(&key)).unwrap();
    mode(0o640);
    assert!(refusal(&key).contains("is open to other users (mode 640); close it with `chmod 600"));
    mode(0o400);
    check_identity(&with_identity(&key)).unwrap();
    let public = folder.path().join("id.pub");
    std::fs::set_permissions(&public, std::fs::Permissions::from_mode(0o600)).unwrap();
    assert!(refusal(&public).contains("is not a private key"));
    std::fs::remove_file(&public).unwrap();
    assert!(
        refusal(&key).contains("its public half is not beside it; write it with `ssh-keygen -y")
    );
    assert!(refusal(folder.path()).contains("is not a file"));
    assert!(refusal(&key).starts_with("vehicle sub: ssh_identity /"));
}

fn example(name: &str) -> Config {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(name).join("podtether.yaml");
    config::load(&path, &env()).unwrap_or_else(|error| panic!("{error}"))
}

/// The shipped example is the contract's.
#[test]
fn the_example_declares_both_vehicles_and_its_limits() {
    let config = example("learning-to-swim");
    assert_eq!(config.limits.budget_usd, Some(usd("174")));
    assert_eq!(config.limits.max_usd_per_hour, Some(UsdPerHour::new(usd("0.80"))));
    assert_eq!(config.warnings, Vec::<String>::new());
    assert_eq!(config.default_vehicle.0, "hippocampus");
    for (name, pod, volume, hosts, logs) in [
        ("hippocampus", "lts-replication", "lts-replication", "known_hosts_runpod", "logs/pod"),
        (
            "bluerov2",
            "lts-replication-bluerov2",
            "bluerov2-lts",
            "known_hosts_runpod_bluerov2",
            "logs/pod/bluerov2",
        ),
    ] {
        let vehicle = config.vehicle(Some(name)).unwrap();
        assert_eq!(
            (vehicle.pod_name.as_str(), vehicle.network_volume_name.as_str()),
            (pod, volume)
        );
        assert_eq!(vehicle.known_hosts_file, Path::new(HOME).join(".ssh").join(hosts));
        assert!(vehicle.local_log_dir.ends_with(Path::new("learning-to-swim").join(logs)));
        let centers: Vec<&str> =
            vehicle.datacenter_preference.iter().map(|d| d.0.as_str()).collect();
        assert_eq!(centers, ["EU-RO-1", "US-TX-3", "EUR-IS-1", "US-KS-2", "US-GA-2"]);
    }
    let trainings: Vec<_> =
        config.trainings.iter().map(|t| (t.name.as_str(), t.vehicle.0.as_str())).collect();
    assert_eq!(trainings, [("curee", "hippocampus"), ("bluerov2", "bluerov2")]);
}

/// The example spells the shared defaults out; they must not drift from the real ones.
#[test]
fn the_examples_spelt_out_defaults_are_the_defaults() {
    let config = example("learning-to-swim");
    let spelt = config.vehicle(None).unwrap();
    let mut plain = good(VEHICLE).vehicles.remove(0);
    plain.name = spelt.name.clone();
    plain.pod_name = spelt.pod_name.clone();
    plain.network_volume_name = spelt.network_volume_name.clone();
    plain.datacenter_preference = spelt.datacenter_preference.clone();
    plain.known_hosts_file = spelt.known_hosts_file.clone();
    plain.local_log_dir = spelt.local_log_dir.clone();
    assert_eq!(*spelt, plain);
}

fn sources(words: &[Template]) -> Vec<&str> {
    words.iter().map(Template::source).collect()
}

/// Every file that the examples name is there, and what a pod is given of them.
#[test]
fn the_examples_declare_their_setup_patches_and_sweep() {
    let config = example("learning-to-swim");
    let of = |name: &str| config.workloads[&VehicleName(name.to_owned())].clone();
    assert_eq!(of("hippocampus").setup, of("bluerov2").setup, "a shared key holds for both");
    assert_eq!((of("hippocampus").patches, of("hippocampus").sweep), (None, None));
    let patches = of("bluerov2").patches.unwrap();
    assert_eq!((patches.script, &*patches.checkout), (None, "isaac-auv-env"));
    assert_eq!(patches.marker, "markers/bluerov2_patch_applied");
    let (setup, sweep) = (of("bluerov2").setup.unwrap(), of("bluerov2").sweep.unwrap());
    assert_eq!(sources(&setup.command), ["bash", "{script}", "{mount}"]);
    assert_eq!(sweep.marker, "markers/axis_sanity_PASS");
    let quick = example("quickstart");
    assert!(matches!(quick.cloud, CloudChoice::Local { .. }));
    let quick = quick.workloads.into_values().next().unwrap().setup.unwrap();
    for run in [setup, sweep.run, quick] {
        for file in std::iter::once(&run.script).chain(&run.files) {
            assert!(file.is_file(), "{}", file.display());
        }
    }
    assert!(patches.files.iter().all(|file| file.is_file()));
}

/// A script that is missing is told when it is asked for, never here: a stop needs the config.
#[test]
fn a_workload_that_makes_no_sense_is_told_with_its_line() {
    let own = |lines: &str| format!("{VEHICLE}{lines}");
    let commit = "7c5ebe7f7a08acd2570b5fba328e92b7f59f6794";
    for (text, told) in [
        (own("    sweep: {script: x.py}\n"), "sweep.marker: is missing"),
        (own("    sweep: {marker: m}\n"), "sweep.script: is missing"),
        (with_line("setup: {files: [a]}"), "setup.script: is missing"),
        (own("    patches: {marker: m}\n"), "patches.checkout: is missing"),
        (
            own("    patches: {checkout: c, marker: m, commit: 7c5ebe7}\n"),
            "7c5ebe7 is not a whole commit",
        ),
        (
            own(&format!("    patches: {{checkout: ../c, marker: m, commit: {commit}}}\n")),
            "../c is not a plain path on the volume",
        ),
        (
            own(&format!("    patches: {{checkout: /root/c, marker: m, commit: {commit}}}\n")),
            "/root/c is not below volume_mount_path /workspace",
        ),
        (with_line("setup: {script: x.sh, command: [bash, \"{scirpt}\"]}"), "did you mean script?"),
        (with_line("setup: {script: x.sh, command: [bash, x.sh]}"), "does not run the script"),
        (
            with_line("setup: {script: x.sh, command: [bash, \"{script}\", \"{marker}\"]}"),
            "{marker} stands for nothing",
        ),
        (with_line("setup: {script: x.sh, files: [a/x, b/x]}"), "has the name of another file"),
        (with_line("sweep: {script: x.py, marker: m}"), "sweep"),
    ] {
        let refused = refused(&text);
        assert!(refused.contains(told), "{told}: {refused}");
    }
    let config = good(&own("    sweep: {script: nowhere.py, marker: m}\n"));
    let sweep = config.workloads.into_values().next().unwrap().sweep.unwrap();
    assert_eq!(sources(&sweep.run.command), ["python3", "{script}", "--marker", "{marker}"]);
}

#[test]
fn the_local_example_is_local_and_the_smallest() {
    let config = example("local");
    assert!(matches!(config.cloud, CloudChoice::Local { .. }));
    assert_eq!(config.vehicles.len(), 1);
}

/// H04: neither the config nor its errors can show the key.
#[test]
fn the_key_is_not_in_any_print_of_the_config() {
    let env = Environment::isolated([("HOME", HOME), ("RUNPOD_API_KEY", "MARKER-key-1")]);
    let config = load_with(VEHICLE, &env).1.unwrap();
    assert!(!format!("{config:?} {env:?}").contains("MARKER"));
    let misplaced =
        refused(&with_line("keychain_account: [rpa_ABCDEFGH1234]\napi_key: rpa_ABCDEFGH1234"));
    assert!(!misplaced.contains("ABCDEFGH"), "{misplaced}");
}

/// An editor that follows the schema accepts the examples and marks the typical slips.
#[test]
fn the_schema_accepts_the_examples_and_refuses_slips() {
    let schema = config::schema();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let value = |text: &str| -> serde_json::Value { serde_saphyr::from_str(text).unwrap() };
    for name in ["learning-to-swim", "local", "quickstart"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("examples")
            .join(name)
            .join("podtether.yaml");
        let example = value(&std::fs::read_to_string(path).unwrap());
        let errors: Vec<String> = validator.iter_errors(&example).map(|e| e.to_string()).collect();
        assert_eq!(errors, Vec::<String>::new(), "{name}");
    }
    for slip in [
        "gpu_cuont: 1",
        "idle_minutes: 1h",
        "limits: {budget_usd: 0}",
        "limits: {budget_window: week}",
        "cloud_type: COMMUNITY",
        "notify: {desktop: \"yes\"}",
        "notify: {webhook: discord}",
        "notify: {url: x}",
    ] {
        assert!(!validator.is_valid(&value(&with_line(slip))), "{slip}");
    }
    assert_eq!(schema["properties"]["timeouts"]["properties"]["setup_sec"]["default"], 5400);
}
