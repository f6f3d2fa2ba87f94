//! Edits of a file in the shape of the upstream one, written for these tests.

use super::*;
use crate::domain::LinePattern;
use crate::training::sample;

/// A commented preset above the active lines, uses of the names elsewhere, comments behind values.
const FILE: &str = "\
class Cfg:
    volume = 1.0 # m3
    class domain_randomization:
        # com_to_cob_offset_radius = 0 # a preset
        # volume_range = [0.022747843530591776, 0.022747843530591776] # the other one
        com_to_cob_offset_radius = 0.05 # uniform, from a sphere
        volume_range = [0.019747843530591773, 0.02574784353059178] # lower, upper
        old_volume_range = [1, 2]

def reset(self):
    if cfg.com_to_cob_offset_radius == 0.05 or volume_range == 3:
        low, high = cfg.volume_range
";

fn at(recipe: &Recipe, name: &str, bytes: &[u8]) -> Result<Edited, EditError> {
    let level = recipe.levels.iter().find(|level| level.name == name).unwrap();
    edited(bytes, recipe, &recipe.edits[0], level)
}

#[test]
fn only_the_two_active_lines_change() {
    let recipe = sample::curee();
    let made = at(&recipe, "DR_1", FILE.as_bytes()).unwrap();
    let changed: Vec<(usize, &str, &str)> =
        made.changes.iter().map(|c| (c.line, c.field.as_str(), c.after.as_str())).collect();
    assert_eq!(
        changed,
        [
            (
                6,
                "com_to_cob_offset_radius",
                "        com_to_cob_offset_radius = 0.025 # uniform, from a sphere"
            ),
            (
                7,
                "volume_range",
                "        volume_range = [0.021247843530591776, 0.024247843530591776] # lower, upper"
            ),
        ]
    );
    let expected = FILE.replacen("= 0.05 #", "= 0.025 #", 1).replace(
        "[0.019747843530591773, 0.02574784353059178]",
        "[0.021247843530591776, 0.024247843530591776]",
    );
    assert_eq!(made.text, expected);
    assert_eq!(made.found, "DR_2");
    assert_eq!(made.sha256_before, sha256_hex(FILE.as_bytes()));
    assert_eq!(made.sha256_after, sha256_hex(expected.as_bytes()));
    let told = diff("env.py", &made.changes);
    assert!(told.starts_with("--- env.py\n+++ env.py\n@@ -6 +6 @@\n-        com_to"), "{told}");
    assert_eq!(told.lines().count(), 8);
    // The same level again changes nothing.
    let again = at(&recipe, "DR_1", made.text.as_bytes()).unwrap();
    assert_eq!((again.text.as_str(), again.changes.len()), (expected.as_str(), 0));
    assert_eq!(again.sha256_after, made.sha256_after);
}

/// From every level to every other and back is the first file, byte by byte, with either line end,
/// with tabs, without a last line end, and with or without comments.
#[test]
fn any_level_and_back_gives_the_first_bytes() {
    for recipe in [sample::curee(), sample::bluerov2()] {
        let first = &recipe.levels[0];
        for shape in 0..16_u32 {
            let (end, tail) = (["\n", "\r\n"][(shape & 1) as usize], shape & 2 == 0);
            let (indent, note) = (["\t\t", "    "][(shape >> 2 & 1) as usize], shape & 8 == 0);
            let line = |name: &str, gap: &str| {
                let note = if note { "  # = 0.1, not this" } else { "" };
                format!("{indent}{name}{gap}={gap}{}{note}{end}", first.values[name])
            };
            let mut file = format!(
                "é # volume_range = [1]{end}{}{end}{}x = 'volume_range = 1'",
                line("volume_range", " "),
                line("com_to_cob_offset_radius", ""),
            );
            if tail {
                file.push_str(end);
            }
            for a in &recipe.levels {
                for b in &recipe.levels {
                    let one = at(&recipe, &a.name, file.as_bytes()).unwrap();
                    let two = at(&recipe, &b.name, one.text.as_bytes()).unwrap();
                    assert_eq!(two.found, a.name);
                    let back = at(&recipe, &a.name, two.text.as_bytes()).unwrap();
                    assert_eq!(back.text, one.text);
                    // Outside of the values nothing differs.
                    let without = |text: &str, level: &Level| {
                        let values: Vec<&String> = level.values.values().collect();
                        text.lines()
                            .map(|line| {
                                let long = values.iter().max_by_key(|v| v.len()).unwrap();
                                line.replacen(long.as_str(), "V", 1)
                            })
                            .map(|line| {
                                let radius = &level.values["com_to_cob_offset_radius"];
                                match line.split_once('=') {
                                    Some((name, rest))
                                        if name.trim() == "com_to_cob_offset_radius" =>
                                    {
                                        format!("{name}={}", rest.replacen(radius.as_str(), "V", 1))
                                    }
                                    _ => line,
                                }
                            })
                            .collect::<Vec<_>>()
                            .join("\n")
                    };
                    assert_eq!(without(&one.text, a), without(&two.text, b));
                    let home = at(&recipe, &first.name, back.text.as_bytes()).unwrap();
                    assert_eq!(home.text, file);
                }
            }
        }
    }
}

fn refused(recipe: &Recipe, file: &str) -> String {
    at(recipe, "DR_1", file.as_bytes()).unwrap_err().to_string()
}

/// Bad input: an edited upstream file.
#[test]
fn a_file_that_is_not_as_the_recipe_knows_it_is_refused_with_what_was_found() {
    let recipe = sample::curee();
    let cases = [
        (FILE.replace("= 0.05 #", "= 0.06 #"), "holds com_to_cob_offset_radius = 0.06 (line 6)"),
        // The value of one level with that of another.
        (
            FILE.replace("= 0.05 #", "= 0.025 #"),
            "com_to_cob_offset_radius = 0.025 (line 6) and volume_range",
        ),
        // The same number in other digits is another text.
        (FILE.replace("= 0.05 #", "= 0.050 #"), "0.050"),
        (FILE.replace("0.019747843530591773,", "0.019747843530591776,"), "0.019747843530591776"),
        (FILE.replace("= 0.05 #", "= 0.05 + x #"), "0.05 + x"),
        (
            FILE.replace(
                "        com_to_cob_offset_radius = 0.05",
                "        # com_to_cob_offset_radius = 0.05",
            ),
            "0 active lines with com_to_cob_offset_radius,",
        ),
        (
            FILE.replace("        # com_to_cob", "        com_to_cob"),
            "2 active lines with com_to_cob_offset_radius (lines 4, 6)",
        ),
        (String::new(), "0 active lines"),
    ];
    for (file, says) in cases {
        let error = refused(&recipe, &file);
        assert!(error.starts_with("code/env.py ") && error.contains(says), "{error}");
    }
    // The other vehicle's file.
    let error = refused(&sample::bluerov2(), FILE);
    assert!(error.contains("no level of training bluerov2 (known: DR_0, DR_1, DR_2)"), "{error}");
    let level = &recipe.levels[0];
    let error = edited(b"\xff", &recipe, &recipe.edits[0], level).unwrap_err();
    assert!(error.to_string().contains("UTF-8"), "{error}");
}

/// Another lab's file needs no code of ours.
#[test]
fn a_pattern_tells_how_a_line_looks() {
    for (pattern, file, after) in [
        ("{name}: {value}", "a:\n  noise : 0.1  # x\n", "a:\n  noise : 0.25  # x\n"),
        ("\"{name}\": {value},", "{\n \"noise\":0.1 ,\n}\n", "{\n \"noise\":0.25 ,\n}\n"),
        ("export {name}={value}", "export  noise=0.1\n", "export  noise=0.25\n"),
        ("self.{name} = {value};", "self.noise = 0.1; // x\n", "self.noise = 0.25; // x\n"),
        ("#define {name} {value}", "#define noise 0.1\n", "#define noise 0.25\n"),
    ] {
        let mut recipe = sample::curee();
        recipe.levels = ["0.1", "0.25"]
            .into_iter()
            .map(|value| Level {
                name: format!("L{value}"),
                aliases: Vec::new(),
                values: [("noise".to_owned(), value.to_owned())].into(),
            })
            .collect();
        recipe.edits[0].fields = vec!["noise".to_owned()];
        recipe.edits[0].pattern = LinePattern::parse(pattern).unwrap();
        let made = at(&recipe, "L0.25", file.as_bytes()).unwrap();
        assert_eq!(made.text, after, "{pattern}");
    }
    for pattern in ["{name}", "{value} = {name}", "{name}{value}", "{name} = {value} {x}", "x"] {
        assert_eq!(LinePattern::parse(pattern), None, "{pattern}");
    }
}
