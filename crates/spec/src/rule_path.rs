//! Patterns for paths: [`PathPattern`].

use std::fmt::{self, Write as _};

/// A path with wildcards: `*` stands for any text, slashes included, and `?` for one character.
///
/// Its text is the pattern itself, in quotes where it has white space, a semicolon, a quote or a
/// backslash, or is empty; in quotes a backslash makes the next character an ordinary one and `\n`
/// a line end.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PathPattern(String);

impl PathPattern {
    /// The pattern, without quotes.
    pub fn new(pattern: impl Into<String>) -> Self {
        Self(pattern.into())
    }

    /// Whether the whole path is as the pattern says.
    pub fn matches(&self, path: &str) -> bool {
        let pattern: Vec<char> = self.0.chars().collect();
        let path: Vec<char> = path.chars().collect();
        let (mut at_pattern, mut at_path) = (0, 0);
        // Where the last `*` stands and how far it reached: a mismatch gives it one more.
        let mut star = None;
        while at_path < path.len() {
            match pattern.get(at_pattern) {
                Some('*') => {
                    star = Some((at_pattern, at_path));
                    at_pattern += 1;
                }
                Some(&c) if c == '?' || c == path[at_path] => {
                    at_pattern += 1;
                    at_path += 1;
                }
                _ => {
                    let Some((star_at, reached)) = star else {
                        return false;
                    };
                    star = Some((star_at, reached + 1));
                    at_pattern = star_at + 1;
                    at_path = reached + 1;
                }
            }
        }
        pattern[at_pattern..].iter().all(|&c| c == '*')
    }

    fn needs_quotes(&self) -> bool {
        let special = |c: char| c.is_whitespace() || c.is_control() || ";\"\\".contains(c);
        self.0.is_empty() || self.0.contains(special)
    }
}

impl fmt::Display for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.needs_quotes() {
            return f.write_str(&self.0);
        }
        f.write_char('"')?;
        for c in self.0.chars() {
            match c {
                '\n' => f.write_str("\\n")?,
                '"' | '\\' => write!(f, "\\{c}")?,
                _ => f.write_char(c)?,
            }
        }
        f.write_char('"')
    }
}

#[cfg(test)]
mod tests {
    use super::PathPattern;

    #[test]
    fn wildcards() {
        for (pattern, path, expected) in [
            ("live", "live", true),
            ("live", "live/tls.key", false),
            ("*/tls.key", "live/tls.key", true),
            ("*/tls.key", "a/b/tls.key", true),
            ("*/tls.key", "tls.key", false),
            ("*", "", true),
            ("*a*b", "xxaxxbxb", true),
            ("*a*b", "xxaxxbx", false),
            ("l?ve", "live", true),
            ("l?ve", "lve", false),
            ("", "", true),
        ] {
            assert_eq!(
                PathPattern::new(pattern).matches(path),
                expected,
                "{pattern} against {path}"
            );
        }
    }
}
