//! Numbers as reports print them.

use std::collections::BTreeMap;

use untorn_spec::ScenarioEntry;

/// A number of crash states by its binary logarithm: `2^12.3`.
pub(crate) fn states(log2: f64) -> String {
    let digits = usize::from(log2 < 100.0);
    let text = format!("{log2:.digits$}");
    format!("2^{}", text.strip_suffix(".0").unwrap_or(&text))
}

/// How much of the crash states was judged: `exhaustive`, `bounded 0.6312`, or
/// `nothing`.
pub(crate) fn explored(entry: &ScenarioEntry) -> String {
    if entry.exhaustive {
        "exhaustive".to_owned()
    } else if entry.recoveries == 0 {
        "nothing".to_owned()
    } else {
        format!("bounded {}", share(entry.coverage))
    }
}

/// A share between 0 and 1 with four digits, rounded down: only all is 1.
pub(crate) fn share(share: f64) -> String {
    format!("{:.4}", (share * 10_000.0).floor() / 10_000.0)
}

/// `old 89, new 120, empty 3`: the allowed outcomes first.
pub(crate) fn outcomes(outcomes: &BTreeMap<String, u64>) -> String {
    let allowed = ["old", "new"];
    let first = allowed
        .iter()
        .filter_map(|name| outcomes.get_key_value(*name));
    let rest = outcomes
        .iter()
        .filter(|(name, _)| !allowed.contains(&name.as_str()));
    let parts: Vec<String> = first
        .chain(rest)
        .map(|(name, count)| format!("{name} {count}"))
        .collect();
    parts.join(", ")
}

/// Seconds with one digit.
pub(crate) fn seconds(seconds: f64) -> String {
    format!("{seconds:.1}")
}

/// How a control fared, in a word or two: the kinds found, or that none was.
pub(crate) fn caught(entry: &ScenarioEntry) -> String {
    let found: Vec<&str> = entry
        .violations
        .iter()
        .map(|violation| violation.kind.name())
        .collect();
    match entry.caught {
        Some(false) if found.is_empty() => "NOT CAUGHT".to_owned(),
        Some(false) => format!("NOT CAUGHT: {}", found.join(", ")),
        None if found.is_empty() => "hidden here".to_owned(),
        None | Some(true) => found.join(", "),
    }
}
