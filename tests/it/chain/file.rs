//! A campaign's file as its writer meets it: what is refused, with line, key and what would do.

use podtether::config::{self, Environment};
use podtether::domain::{LinkEnd, PinnedFile, Work};

const CONFIG: &str = "\
vehicles:
  sub:
    pod_name: sub
    network_volume_name: sub
    datacenter_preference: [EU-RO-1]
    known_hosts_file: known_hosts
    local_log_dir: logs
  boat:
    pod_name: boat
    network_volume_name: boat
    datacenter_preference: [EU-RO-1]
    known_hosts_file: known_hosts_boat
    local_log_dir: logs/boat
default_vehicle: sub
trainings:
  walk:
    vehicle: sub
    command: ./walk {noise}
    levels: {small: {aliases: [1], values: {noise: \"0.1\"}}, large: {values: {noise: \"2\"}}}
    expect: {iterations: 4}
  sail: {vehicle: boat, command: ./sail}
";

/// The file's links begin on line 3.
fn load(text: &str) -> Result<podtether::domain::Campaign, String> {
    load_with(CONFIG, text)
}

fn load_with(config: &str, text: &str) -> Result<podtether::domain::Campaign, String> {
    let folder = tempfile::tempdir().unwrap();
    let env = Environment::isolated([("HOME", "/home/ann")]);
    let path = folder.path().join("podtether.yaml");
    std::fs::write(&path, config).unwrap();
    let config = config::load(&path, &env).unwrap();
    let path = folder.path().join("c.yaml");
    std::fs::write(&path, text).unwrap();
    let shown = format!("{}/", folder.path().display());
    config::load_campaign(&path, &config, &env)
        .map_err(|error| error.to_string().replace(&shown, ""))
}

fn links(text: &str) -> String {
    format!("campaign: c\nlinks:\n{text}\n- {{name: off, stop: true}}\n")
}

#[test]
fn a_campaign_is_read_with_all_that_its_links_are_held_to() {
    let sha = "a".repeat(64);
    let text = links(&format!(
        "- name: one\n  training: walk\n  dr: SMALL\n  seed: 3\n  max_usd: 1.5\n  pins: [{{pod: /workspace/a.py, sha256: {sha}}}]\n  gates: {{before: {{require: [m/a]}}, after: {{forbid: [m/b]}}}}\n  expect: {{artifacts: [\"*.pt\"], reward_lines: iterations, reward: [1, 2.5]}}\n  pause: leave"
    ));
    let campaign = load(&text).unwrap();
    let one = &campaign.links[0];
    assert_eq!((one.line, one.max_usd.micros(), one.pins.len()), (3, 1_500_000, 1));
    assert_eq!(one.end, LinkEnd::Pause { stops: false });
    assert_eq!((one.before[0].path.as_str(), one.after[0].must_exist), ("m/a", false));
    assert!(matches!(&one.work, Work::Training { seed: Some(seed), .. } if seed == "3"));
    assert_eq!(campaign.links[1].end, LinkEnd::Stop);
}

/// Paths on the pod mean the same on the local cloud, where the mount path is another: a rehearsal runs
/// the file as it is.
#[test]
fn a_campaigns_paths_mean_the_volume_on_either_cloud() {
    let sha = "a".repeat(64);
    for (cloud, mount) in [("runpod", "/workspace"), ("local", "/state/mnt/sub/workspace")] {
        let config = format!("cloud: {cloud}\nlocal: {{state_dir: /state}}\n{CONFIG}");
        for (written, workdir) in [
            ("code", format!("{mount}/code")),
            ("/workspace/code", format!("{mount}/code")),
            ("/opt/code", "/opt/code".to_owned()),
        ] {
            let text = links(&format!(
                "- {{name: one, command: x, workdir: {written}, max_usd: 1, pins: [{{pod: /workspace/a, sha256: {sha}}}], gates: {{before: {{require: [/workspace/m/b]}}}}}}"
            ));
            let one = load_with(&config, &text).unwrap().links.remove(0);
            assert!(
                matches!(&one.work, Work::Command { workdir: Some(found), .. } if *found == workdir),
                "{cloud}: {one:?}"
            );
            assert_eq!(one.before[0].path, "m/b");
            assert_eq!(one.pins[0].file, PinnedFile::OnPod("a".to_owned()));
        }
    }
}

/// Nine aliases of nine aliases of …
fn bomb() -> String {
    let lists = ('b'..='j').zip('a'..).map(|(name, of)| {
        let aliases = vec![format!("*{of}"); 9].join(",");
        format!("{name}: &{name} [{aliases}]\n")
    });
    format!("a: &a [x]\n{}", lists.collect::<String>())
}

/// A file that is not there is not called a config, which it is not.
#[test]
fn a_campaigns_file_that_cannot_be_read_is_called_what_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let env = Environment::isolated([("HOME", "/home/ann")]);
    let path = folder.path().join("podtether.yaml");
    std::fs::write(&path, CONFIG).unwrap();
    let config = config::load(&path, &env).unwrap();
    let gone = config::load_campaign(&folder.path().join("gone.yaml"), &config, &env).unwrap_err();
    let gone = gone.to_string();
    assert!(gone.starts_with("cannot read the campaign's file /"), "{gone}");
    assert!(gone.contains("gone.yaml (from --chain)"), "{gone}");
}

/// Bad input: told by line and key, with what would do.
#[test]
fn a_campaign_that_will_not_do_is_refused_with_line_key_and_what_would() {
    let one = |more: &str| links(&format!("- {{name: one, {more}}}"));
    let job = |more: &str| one(&format!("command: x, max_usd: 1{more}"));
    for (text, says) in [
        (
            one("training: wlak, max_usd: 1"),
            "c.yaml:3: links[0].training: wlak is not a training; did you mean walk?",
        ),
        (
            one("training: walk, dr: smal, max_usd: 1"),
            "c.yaml:3: links[0].dr: smal is not a level of walk; did you mean small?",
        ),
        (
            one("training: sail, max_usd: 1"),
            "c.yaml:3: links[0].training: sail runs on vehicle boat",
        ),
        (one("setup: true, max_usd: 1"), "c.yaml:3: links[0].setup: vehicle sub declares no setup"),
        (one("patches: true, max_usd: 1"), "links[0].patches: vehicle sub declares no patches"),
        (one("sweep: false, max_usd: 1"), "links[0].sweep: false is not true"),
        (one("command: x"), "c.yaml:3: links[0].max_usd: is missing; write what it may cost"),
        (one("max_usd: 1"), "c.yaml:3: links[0]: does nothing; give it one of: setup,"),
        (one("command: x, sync: y, max_usd: 1"), "links[0]: does several things: command, sync"),
        (job(", seed: 1"), "links[0].seed: belongs to a training"),
        (
            job(", max_runtime_sex: 9"),
            "links[0].max_runtime_sex: unknown key; did you mean max_runtime_sec?",
        ),
        (
            job(", max_runtime_sec: 10m"),
            "links[0].max_runtime_sec: 10m is not a whole number of seconds",
        ),
        (job(", needs: [tow]"), "links[0].needs: tow is not the name of a link before it"),
        (job(", pins: [{pod: a, sha256: abc}]"), "links[0].pins[0].sha256: abc is not a SHA-256"),
        (job(", pins: [{sha256: aa}]"), "links[0].pins[0]"),
        (
            job(", pins: [{pod: ../a, sha256: x}]"),
            "links[0].pins[0].pod: ../a is not a plain relative path",
        ),
        (
            job(", gates: {before: {require: [/etc/x]}}"),
            "links[0].gates.before.require: /etc/x is not below",
        ),
        (job(", gates: {require: [x]}"), "links[0].gates.require: unknown key"),
        (job(", expect: {reward_lines: iterations}"), "iterations of this link are not known"),
        (
            one("training: walk, max_usd: 1, expect: {reward: recipe}"),
            "the recipe of this link expects no reward",
        ),
        (
            job(", expect: {reward: lots}"),
            "lots is neither two numbers, the lower one first, nor recipe",
        ),
        (job(", expect: {artifacts: [\"[a\"]}"), "links[0].expect.artifacts: [a is no pattern"),
        (job(", workdir: ../x"), "links[0].workdir: ../x is not a plain path on the volume"),
        (job(", pause: maybe"), "links[0].pause: maybe is no way to pause"),
        (
            job(", stop: true"),
            "links.one: stops the pod before the last link; only the last link stops it",
        ),
        (
            links("- {name: off, command: x, max_usd: 1}"),
            "c.yaml:4: links[1].name: off is the name of the link on line 3 too",
        ),
        (
            "campaign: c\nlinks:\n- {name: one, command: x, max_usd: 1}\n".to_owned(),
            "c.yaml:3: links.one: is the last link and does not stop the pod; add a last link",
        ),
        (
            "campaign: c\nvehicle: sbu\nlinks: [{name: off, stop: true}]".to_owned(),
            "c.yaml:2: vehicle: sbu is not a vehicle; did you mean sub?",
        ),
        ("links: [{name: off, stop: true}]".to_owned(), "campaign: is missing"),
        ("campaign: c\nlinks: []".to_owned(), "c.yaml:2: links: has no link"),
        ("campaign: c".to_owned(), "links: is missing"),
        ("".to_owned(), "campaign: is missing"),
        ("campaign: c\nlinks:\n\t- a".to_owned(), "c.yaml:3:2: not YAML: a tab, where only spaces"),
        (
            "campaign: c\ncampaign: d\nlinks: [{name: off, stop: true}]".to_owned(),
            "c.yaml:2: campaign: given twice, first on line 1",
        ),
        (
            "campaign: c\nlinks: &l [{name: a, needs: *l}]".to_owned(),
            "not YAML: an alias (*name) leads back into its own anchor",
        ),
        (bomb(), "its aliases (*name) make it far larger than any settings are"),
    ] {
        let error = load(&text).unwrap_err();
        assert!(error.starts_with("c.yaml") && error.contains(says), "{text}\n{says}\n{error}");
    }
}
