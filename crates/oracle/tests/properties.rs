//! What holds for all trees.

use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use untorn_oracle::{
    Content, Name, Node, Oracle, OracleOptions, Outcome, TreeDigest, TreeSnapshot,
};

fn config() -> ProptestConfig {
    ProptestConfig {
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("regressions"))),
        ..ProptestConfig::default()
    }
}

/// Few names, modes and contents, so that trees often agree in part.
fn nodes() -> impl Strategy<Value = Node> {
    let mode = || prop::sample::select(vec![0o600, 0o644, 0o4755]);
    let content = prop_oneof![
        prop::sample::select(vec!["", "a", "ab", "abc", "a\0c", "ab\0"]).prop_map(Vec::from),
        prop::collection::vec(any::<u8>(), 0..20),
    ];
    let leaf = prop_oneof![
        4 => (mode(), content).prop_map(|(mode, content)| Node::file(mode, content)),
        1 => prop::sample::select(vec!["a", "b"]).prop_map(Node::symlink),
    ];
    leaf.prop_recursive(3, 12, 4, move |inner| {
        (
            mode(),
            prop::collection::btree_map("[ab\\xff\\\\]", inner, 0..4),
        )
            .prop_map(|(mode, entries)| {
                let entries = entries
                    .into_iter()
                    .map(|(name, node)| (Name::from(name.as_str()), node));
                Node::directory(mode, entries)
            })
    })
}

fn trees() -> impl Strategy<Value = TreeSnapshot> {
    prop_oneof![1 => Just(TreeSnapshot::missing()), 9 => nodes().prop_map(TreeSnapshot::new)]
}

/// Trees with at least one byte of content.
fn trees_with_content() -> impl Strategy<Value = TreeSnapshot> {
    (nodes(), prop::collection::vec(any::<u8>(), 1..5)).prop_map(|(node, content)| {
        let entries = [("any", node), ("some", Node::file(0o644, content))];
        TreeSnapshot::new(Node::directory(0o755, entries))
    })
}

/// Every byte of content in a tree.
fn bytes_of(node: &mut Node) -> Vec<&mut u8> {
    match node {
        Node::Directory { entries, .. } => entries.values_mut().flat_map(bytes_of).collect(),
        Node::File {
            content: Content::Whole(bytes),
            ..
        } => bytes.iter_mut().collect(),
        _ => Vec::new(),
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_generation_is_itself(
        generations in prop::collection::vec(trees(), 1..5),
        which in any::<prop::sample::Index>(),
    ) {
        let which = which.index(generations.len());
        let oracle = Oracle::new(generations.clone(), OracleOptions::default()).unwrap();
        let judgement = oracle.judge(&generations[which], &[which]);
        prop_assert_eq!(judgement.outcome, Outcome::Generation(which));
        prop_assert!(judgement.violation.is_none());
    }

    #[test]
    fn what_equals_no_allowed_generation_is_a_violation(
        generations in prop::collection::vec(trees(), 1..5),
        allowed in prop::collection::vec(any::<prop::sample::Index>(), 1..3),
        seen in trees(),
    ) {
        let allowed: Vec<_> = allowed.iter().map(|index| index.index(generations.len())).collect();
        let is_right = allowed.iter().any(|&g| generations[g] == seen);
        let oracle = Oracle::new(generations.clone(), OracleOptions::default()).unwrap();
        let judgement = oracle.judge(&seen, &allowed);
        prop_assert_eq!(judgement.violation.is_none(), is_right);
        prop_assert_eq!(judgement.outcome == Outcome::Violation, !is_right);
        if let Some(violation) = judgement.violation {
            prop_assert!(!violation.findings.is_empty());
            let json = serde_json::to_string(&violation).unwrap();
            prop_assert_eq!(serde_json::from_str::<untorn_oracle::Violation>(&json).unwrap(), violation);
        }
    }

    #[test]
    fn no_changed_byte_is_accepted(
        generations in prop::collection::vec(trees_with_content(), 1..4),
        which in any::<prop::sample::Index>(),
        place in any::<prop::sample::Index>(),
        difference in 1_u8..,
    ) {
        let mut root = generations[which.index(generations.len())].root().clone();
        let mut bytes = bytes_of(&mut root);
        let place = place.index(bytes.len());
        *bytes[place] ^= difference;
        let seen = TreeSnapshot::new(root);
        prop_assume!(!generations.contains(&seen));
        let allowed: Vec<_> = (0..generations.len()).collect();
        let oracle = Oracle::new(generations, OracleOptions::default()).unwrap();
        prop_assert_eq!(oracle.judge(&seen, &allowed).outcome, Outcome::Violation);
    }

    #[test]
    fn digests_are_equal_exactly_when_trees_are(left in trees(), right in trees()) {
        prop_assert_eq!(left.digest() == right.digest(), left == right);
        prop_assert_eq!(left.difference(&right).is_empty(), left == right);
        prop_assert_eq!(left.digest(), left.clone().digest());
    }

    #[test]
    fn snapshots_and_digests_round_trip(tree in trees()) {
        let json = serde_json::to_string(&tree).unwrap();
        prop_assert_eq!(&serde_json::from_str::<TreeSnapshot>(&json).unwrap(), &tree);
        let digest = tree.digest();
        prop_assert_eq!(digest.to_string().parse::<TreeDigest>().unwrap(), digest);
        let json = serde_json::to_string(&digest).unwrap();
        prop_assert_eq!(serde_json::from_str::<TreeDigest>(&json).unwrap(), digest);
    }
}
