//! What a guest's console said.

use std::collections::VecDeque;

const KEPT_BYTES: usize = 32 * 1024;
const LINES_TOLD: usize = 16;

/// The end of what a console printed.
#[derive(Debug, Clone, Default)]
pub struct Console {
    bytes: VecDeque<u8>,
}

impl Console {
    /// Takes more of it.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
        let excess = self.bytes.len().saturating_sub(KEPT_BYTES);
        self.bytes.drain(..excess);
    }

    /// True when the kernel said that it panicked.
    pub fn has_panicked(&self) -> bool {
        self.text().contains("Kernel panic")
    }

    /// What a reader needs: from the first sign of a panic on, or else the last lines.
    pub fn told(&self) -> String {
        const SIGNS: [&str; 6] = [
            "BUG:",
            "Oops",
            "general protection fault",
            "Out of memory",
            "invoked oom-killer",
            "Kernel panic",
        ];
        let text = self.text();
        let lines: Vec<&str> = text
            .lines()
            .map(|line| without_time(line.trim_end()))
            .filter(|line| !line.is_empty())
            .collect();
        let first = lines
            .iter()
            .position(|line| SIGNS.iter().any(|sign| line.contains(sign)));
        // The reason of a panic may stand far below its first sign, behind a table of memory.
        let panic = lines.iter().position(|line| line.contains("Kernel panic"));
        let told: Vec<&str> = match (first, panic) {
            (Some(first), Some(panic)) if panic >= first + LINES_TOLD => {
                let head = &lines[first..first + LINES_TOLD / 2];
                let tail = &lines[panic..lines.len().min(panic + LINES_TOLD / 2)];
                head.iter().chain(&["..."]).chain(tail).copied().collect()
            }
            (Some(first), _) => lines.iter().skip(first).take(LINES_TOLD).copied().collect(),
            (None, _) => lines[lines.len().saturating_sub(LINES_TOLD)..].to_vec(),
        };
        let told: Vec<String> = told.iter().map(|line| format!("  {line}")).collect();
        told.join("\n")
    }

    fn text(&self) -> String {
        let bytes: Vec<u8> = self.bytes.iter().copied().collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// A line without the kernel's `[   12.345678] ` before it.
fn without_time(line: &str) -> &str {
    let Some((time, rest)) = line
        .strip_prefix('[')
        .and_then(|rest| rest.split_once("] "))
    else {
        return line;
    };
    let is_time = time
        .chars()
        .all(|c| c.is_ascii_digit() || matches!(c, ' ' | '.'));
    if is_time { rest } else { line }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn console(text: &str) -> Console {
        let mut console = Console::default();
        console.push(text.as_bytes());
        console
    }

    #[test]
    fn a_panic_is_told_from_its_first_sign_on() {
        let text = "[    0.1] fine\r\n[    1.200000] BUG: kernel NULL pointer\r\n\
                    [    1.3] #PF: x\r\n[    1.4] Kernel panic - not syncing: Fatal exception\r\n";
        let console = console(text);
        assert!(console.has_panicked());
        assert_eq!(
            console.told(),
            "  BUG: kernel NULL pointer\n  #PF: x\n  Kernel panic - not syncing: Fatal exception"
        );
    }

    #[test]
    fn the_reason_is_told_too_when_it_is_far_below() {
        let mut text = "init invoked oom-killer: gfp_mask=0\n".to_owned();
        for line in 0..40 {
            text += "memory ";
            text += &line.to_string();
            text.push('\n');
        }
        text.push_str("Kernel panic - not syncing: Out of memory\nRebooting\n");
        let told = console(&text).told();
        assert!(told.starts_with("  init invoked oom-killer"), "{told}");
        assert!(
            told.contains("\n  ...\n  Kernel panic - not syncing: Out of memory"),
            "{told}"
        );
        assert!(told.lines().count() <= LINES_TOLD + 1, "{told}");
    }

    #[test]
    fn without_a_panic_the_end_is_told() {
        let lines: Vec<String> = (0..50).map(|line| format!("line {line}")).collect();
        let told = console(&lines.join("\n")).told();
        assert_eq!(told.lines().count(), LINES_TOLD);
        assert!(told.ends_with("  line 49"), "{told}");
        assert_eq!(Console::default().told(), "");
    }

    #[test]
    fn only_the_end_is_kept() {
        let mut console = Console::default();
        console.push("é".repeat(KEPT_BYTES).as_bytes());
        console.push(b"\nend");
        assert_eq!(console.bytes.len(), KEPT_BYTES);
        assert!(console.told().ends_with("end"));
    }
}
