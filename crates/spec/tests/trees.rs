//! Generated trees: sizes, modes, unique blocks, and the way back from a block to its place.

use std::collections::BTreeSet;

use proptest::prelude::*;
use untorn_spec::{FileSpec, TreeSpec, scenario, scenarios};

fn tree(count: u32, file: Vec<FileSpec>) -> TreeSpec {
    TreeSpec {
        target: "live".to_owned(),
        count,
        file,
        absent_at_first: false,
    }
}

fn file(path: &str, bytes: [u32; 2]) -> FileSpec {
    FileSpec {
        path: path.to_owned(),
        bytes,
        modes: ["0644".to_owned(), "0600".to_owned()],
    }
}

/// Checks every 512-byte block of both generations: it is unique, and tells its place.
fn check(spec: &TreeSpec) {
    let mut seen = BTreeSet::new();
    for generation in 0..=1 {
        for file in spec.generation(generation).expect("a tree").files {
            for (number, block) in file.bytes.chunks(512).enumerate() {
                if block.len() == 512 {
                    assert!(seen.insert(block.to_vec()), "{} block {number}", file.path);
                }
                let mut on_disk = block.to_vec();
                on_disk.resize(512, 0);
                let found = spec.locate(&on_disk);
                // Ends of a few bytes may be alike; anything longer has one place only.
                if block.len() >= 16 {
                    let found = found.expect("a place");
                    assert_eq!(
                        (found.generation, found.path.as_str(), found.offset),
                        (generation, file.path.as_str(), number as u64 * 512)
                    );
                } else if let Some(found) = found {
                    assert_eq!(
                        (found.generation, found.path),
                        (generation, file.path.clone())
                    );
                }
            }
        }
    }
}

#[test]
fn blocks_of_the_largest_tree_are_unique_and_tell_their_place() {
    check(&tree(40, vec![file("a/b/c", [5000, 6000])]));
    let spec = tree(1000, Vec::new());
    let mut seen = BTreeSet::new();
    for generation in 0..=1 {
        let files = spec.generation(generation).unwrap().files;
        let blocks = files.iter().flat_map(|file| file.bytes.chunks_exact(512));
        for block in blocks {
            assert!(seen.insert(block.to_vec()));
        }
    }
}

#[test]
fn no_line_of_a_file_is_repeated() {
    let content = tree(0, vec![file("a", [8193, 1])]).generation(0).unwrap();
    let text = String::from_utf8(content.files[0].bytes.clone()).unwrap();
    let lines: Vec<&str> = text.lines().filter(|line| line.len() > 8).collect();
    let unique: BTreeSet<&&str> = lines.iter().collect();
    assert_eq!(unique.len(), lines.len());
}

#[test]
fn the_two_files_are_as_written_in_the_scenario() {
    let spec = &scenario("two-files").unwrap().tree;
    for (generation, crt, key) in [(0, 5000, 1700), (1, 6000, 1704)] {
        let content = spec.generation(generation).unwrap();
        let files: Vec<(&str, u32, usize)> = content
            .files
            .iter()
            .map(|file| (file.path.as_str(), file.mode, file.bytes.len()))
            .collect();
        assert_eq!(files, [("tls.crt", 0o644, crt), ("tls.key", 0o600, key)]);
        assert_eq!(content.directories.len(), 1);
        assert_eq!(content.directories[0].path, "");
        assert_eq!(content.directories[0].mode, 0o755);
    }
}

#[test]
fn directories_come_before_what_is_in_them() {
    let content = scenario("nested").unwrap().tree.generation(1).unwrap();
    let paths: Vec<&str> = content
        .directories
        .iter()
        .map(|d| d.path.as_str())
        .collect();
    assert_eq!(
        paths,
        [
            "",
            "configmaps",
            "configmaps/trust",
            "configmaps/trust/bundle",
            "secrets",
            "secrets/serving",
        ]
    );
}

#[test]
fn an_absent_target_has_no_old_tree() {
    let spec = &scenario("absent-target").unwrap().tree;
    assert_eq!(spec.generation(0), None);
    let new = spec.generation(1).unwrap();
    let found = spec.locate(&new.files[0].bytes[512..1024]).unwrap();
    assert_eq!((found.generation, found.offset), (1, 512));
}

#[test]
fn generated_files_lie_around_the_boundaries_and_change_their_size() {
    let spec = tree(60, Vec::new());
    let (old, new) = (spec.generation(0).unwrap(), spec.generation(1).unwrap());
    assert_eq!(old.files.len(), 60);
    assert_eq!(old.files[0].path, "file-000");
    assert_eq!(old.files[59].path, "file-059");
    for (old, new) in old.files.iter().zip(&new.files) {
        assert_ne!(old.bytes.len(), new.bytes.len(), "{}", old.path);
        for size in [old.bytes.len(), new.bytes.len()] {
            assert!([511, 513, 2047, 2049, 4095, 4097, 8191, 8193].contains(&size));
        }
        assert_eq!((old.mode, new.mode), (0o644, 0o644));
    }
}

#[test]
fn what_is_not_of_the_tree_has_no_place() {
    let spec = tree(2, Vec::new());
    assert_eq!(spec.locate(&[]), None);
    assert_eq!(spec.locate(&[0; 512]), None);
    assert_eq!(spec.locate(&[0xff; 4096]), None);
    let stranger = tree(0, vec![file("stranger", [4096, 4096])])
        .generation(0)
        .unwrap();
    assert_eq!(spec.locate(&stranger.files[0].bytes[..512]), None);
    let later = spec.generation(2).unwrap();
    assert_eq!(
        spec.locate(&later.files[0].bytes[..512]),
        None,
        "no later generation is meant"
    );
}

#[test]
fn the_smallest_image_holds_both_trees_of_every_scenario() {
    // mkfs.ext4 -N256 keeps 11 inodes for itself; the top directory is one of them. A neighbour
    // commit takes one inode, staging and target take one per directory.
    for scenario in scenarios() {
        let trees = [0, 1].map(|g| scenario.tree.generation(g));
        let inodes: usize = trees
            .iter()
            .flatten()
            .map(|tree| tree.files.len() + tree.directories.len())
            .sum();
        assert!(inodes <= 256 - 11 - 8, "{}: {inodes} inodes", scenario.name);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_tree_tells_its_places(
        count in 0u32..12,
        named in proptest::collection::btree_map("[a-z =]{1,12}", [1u32..9000, 1u32..9000], 1..4),
    ) {
        let files = named.iter().map(|(path, bytes)| file(path, *bytes)).collect();
        let spec = tree(count, files);
        let sizes: Vec<usize> = spec.generation(1).unwrap().files.iter().map(|f| f.bytes.len()).collect();
        for (size, bytes) in sizes.iter().zip(named.values()) {
            prop_assert_eq!(*size, bytes[1] as usize);
        }
        check(&spec);
    }
}
