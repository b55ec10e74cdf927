//! The invariants of the architecture that a compiler does not check: who may depend on whom, and
//! what a crate's sources never do.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// The crates of each layer, from the bottom. A crate depends on lower layers only.
const LAYERS: [&[&str]; 6] = [
    &["untorn-fs", "untorn-explore"],
    &["atomicdir", "untorn-spec"],
    &["untorn-block", "untorn-oracle"],
    &["untorn-device", "untorn-process", "untorn-harness"],
    &["untorn-runner", "untorn-report", "untorn-vm"],
    &["untorn"],
];

/// Texts that do not occur in the sources of a crate.
const NEVER: [(&str, &str); 6] = [
    // The sync core makes its calls through the boundary, so that they can be traced and broken.
    ("atomicdir", "std::fs"),
    ("untorn-spec", "std::process"),
    ("untorn-explore", "std::process"),
    ("untorn-block", "std::process"),
    ("untorn-report", "std::process"),
    ("untorn-oracle", "std::process"),
];

fn layer_of(package: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&package))
}

/// The packages of the workspace, as `cargo metadata` describes them.
fn packages() -> Vec<Value> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version=1"])
        .arg("--manifest-path")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml"))
        .output()
        .expect("cargo runs");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo metadata: {error}");
    let mut metadata: Value = serde_json::from_slice(&output.stdout).expect("it prints JSON");
    match metadata["packages"].take() {
        Value::Array(packages) => packages,
        other => panic!("no packages but {other}"),
    }
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key]
        .as_str()
        .unwrap_or_else(|| panic!("no `{key}` in {value}"))
}

/// The Rust files of a package's `src`.
fn sources(package: &Value) -> Vec<PathBuf> {
    let manifest = Path::new(text(package, "manifest_path"));
    let mut folders = vec![manifest.with_file_name("src")];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of sources") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }
    assert!(!files.is_empty(), "{} has no sources", manifest.display());
    files
}

/// The lines of a file that are no comments, each with its number.
fn code(file: &Path) -> Vec<(usize, String)> {
    let text = fs::read_to_string(file).expect("sources are readable");
    let lines = text.lines().enumerate();
    lines
        .filter(|(_, line)| !line.trim_start().starts_with("//"))
        .map(|(index, line)| (index + 1, line.to_owned()))
        .collect()
}

#[test]
fn every_crate_has_a_layer_and_depends_on_lower_ones_only() {
    for package in packages() {
        let name = text(&package, "name");
        let layer = layer_of(name)
            .unwrap_or_else(|| panic!("{name} has no layer: add it to LAYERS in this test"));
        // Dependencies of tests and build scripts are among them.
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let on = text(dependency, "name");
            if let Some(below) = layer_of(on) {
                assert!(
                    below < layer,
                    "{name} (layer {layer}) depends on {on} (layer {below})"
                );
            } else {
                let path = &dependency["path"];
                assert!(path.is_null(), "{name} depends on {path}, without a layer");
            }
        }
    }
}

#[test]
fn sources_never_do_what_their_layer_must_not() {
    let packages = packages();
    for (name, never) in NEVER {
        let package = packages
            .iter()
            .find(|package| text(package, "name") == name)
            .unwrap_or_else(|| panic!("{name} is no member"));
        for file in sources(package) {
            for (number, line) in code(&file) {
                let at = file.display();
                assert!(!line.contains(never), "{at}:{number} has {never}: {line}");
            }
        }
    }
}

/// Tests may need it, to make what goes wrong; what is shipped has it in one place per crate.
#[test]
fn unsafe_code_is_in_the_modules_for_it() {
    let unsafe_code = ["unsafe {", "unsafe fn", "unsafe impl", "unsafe extern"];
    for file in packages().iter().flat_map(sources) {
        if file.file_name().is_some_and(|name| name == "sys.rs") {
            continue;
        }
        for (number, line) in code(&file) {
            let at = file.display();
            let found = unsafe_code.iter().any(|word| line.contains(word));
            assert!(!found, "{at}:{number}: unsafe outside of a sys.rs: {line}");
        }
    }
}
