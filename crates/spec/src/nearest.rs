//! The known name that somebody who mistyped a name most likely meant.

/// The candidate most like `name`, or `None` when none is near enough to be worth a suggestion.
///
/// Near enough is an edit distance of at most a third of the name's length, plus one: a longer
/// guess would mislead more often than help.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let distance_max = 1 + name.chars().count() / 3;
    candidates
        .into_iter()
        .map(|candidate| (distance(name, candidate), candidate))
        .filter(|(distance, _)| *distance <= distance_max)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// The number of characters to insert, delete or replace to get from one text to the other
/// (Levenshtein), kept as one row of the usual table.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (line, from_char) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = line + 1;
        for (column, to_char) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(from_char != *to_char);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::{distance, nearest};

    #[test]
    fn distances_known_by_hand() {
        for (from, to, expected) in [
            ("", "", 0),
            ("", "abc", 3),
            ("abc", "", 3),
            ("kitten", "sitting", 3),
            ("ext4", "ext4", 0),
            ("ext", "ext4", 1),
            ("empyt", "empty", 2),
        ] {
            assert_eq!(distance(from, to), expected, "{from} -> {to}");
        }
    }

    #[test]
    fn suggests_only_what_is_near() {
        let known = ["ext4", "xfs", "btrfs"];
        assert_eq!(nearest("ext3", known), Some("ext4"));
        assert_eq!(nearest("btfs", known), Some("btrfs"));
        assert_eq!(nearest("reiserfs", known), None);
        assert_eq!(nearest("", known), None);
    }
}
