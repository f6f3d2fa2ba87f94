//! launch_training as a client calls it: a recipe of another lab, whose level goes on the command line.

use super::client::{Client, Era};
use super::rounds::{job_ended, pod_running};
use super::scene::{CONFIG, Scene};
use serde_json::json;

const TRAININGS: &str = "\
trainings:
  glide:
    vehicle: glider
    command: [bash, -c, 'echo \"$@\"; ls -d .podtether', run, '{level}', '--noise={noise}', '{seed}']
    levels:
      small: {aliases: [1], values: {noise: 0.10}}
      large: {aliases: [2], values: {noise: 0.50}}
";

#[test]
fn a_training_is_launched_by_its_name_level_and_seed() {
    let scene = Scene::set();
    scene.write_config(&format!(
        "{}{TRAININGS}",
        CONFIG.replace("vehicle: rover", "vehicle: glider")
    ));
    let mut client = Client::start(scene.server(), Era::Stateless);
    for (arguments, named) in [
        (json!({"training": "glide"}), "dr_level"),
        (json!({"training": "glid", "dr_level": "1"}), "did you mean glide?"),
        (json!({"training": "glide", "dr_level": "3"}), "known here: small, large"),
        (json!({"training": "glide", "dr_level": "1", "seed": -1}), "seed=-1 is not"),
        (
            json!({"training": "glide", "dr_level": "1", "seed": 18_446_744_073_709_551_616.0}),
            "the nearest is 4294967295",
        ),
        (json!({"training": "glide", "dr_level": "1", "seed": "1"}), "seed"),
        (json!({"training": "glide", "dr_level": "1", "vehicle": "rover"}), "vehicle"),
        (json!({"training": "glide", "dr_level": "1", "extra_args": "\""}), "extra_args"),
    ] {
        let failure = client.fail("launch_training", arguments.clone());
        assert_eq!(failure["kind"], "bad_input", "{arguments}: {failure}");
        assert!(failure["message"].as_str().unwrap().contains(named), "{arguments}: {failure}");
    }
    let arguments = json!({"training": "glide", "dr_level": "SMALL", "extra_args": "a 'b c'"});
    let no_pod = client.fail("launch_training", arguments.clone());
    assert_eq!(no_pod["kind"], "no_pod");

    pod_running(&mut client);
    let mut dry = arguments.clone();
    dry["dry_run"] = json!(true);
    let plan = client.call("launch_training", dry);
    assert!(
        plan["command"].as_str().unwrap().ends_with("run small --noise=0.10 1 a 'b c'"),
        "{plan}"
    );
    assert_eq!(
        (&plan["level"], &plan["edits"], &plan["diff"]),
        (&json!("small"), &json!([]), &json!(""))
    );
    assert!(plan["worst_case_usd"].as_f64().unwrap() > 0.0);
    let real = client.call("launch_training", arguments);
    assert_eq!((&real["seed"], &real["values"]["noise"]), (&json!(1), &json!("0.10")));
    assert!(real.get("plan").is_none() && real.get("diff").is_none(), "{real}");
    let id = real["job_id"].as_str().unwrap().to_owned();
    let ended = job_ended(&mut client, &id);
    assert_eq!(ended["state"], "succeeded", "{ended}");
    assert_eq!(ended["log_tail"], "small --noise=0.10 1 a b c\n.podtether");
    assert_eq!(ended["meta"]["provenance"]["training"]["level"], "small", "{ended}");
    // By what the client calls itself.
    assert_eq!(ended["meta"]["provenance"]["agent"], "lines", "{ended}");
    client.call("stop_pod", json!({"vehicle": "glider"}));
}
