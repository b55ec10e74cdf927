//! An error and its causes in one line.

/// The error and its causes, each once. Errors that are written to be read alone say their cause
/// themselves, so that a plain chain would say it twice.
pub fn error_text(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain() {
        let words = cause.to_string();
        if text.is_empty() {
            text = words;
        } else if !text.ends_with(&words) {
            text.push_str(": ");
            text.push_str(&words);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::error_text;

    #[derive(Debug, thiserror::Error)]
    #[error("cannot open x: {source}")]
    struct Open {
        source: std::io::Error,
    }

    #[test]
    fn a_cause_is_said_once() {
        let error = anyhow!(Open {
            source: std::io::Error::other("no such file"),
        });
        let text = error_text(&error.context("the run ended early"));
        assert_eq!(text, "the run ended early: cannot open x: no such file");
        let plain = anyhow!("no such file").context("cannot open x");
        assert_eq!(error_text(&plain), "cannot open x: no such file");
    }
}
