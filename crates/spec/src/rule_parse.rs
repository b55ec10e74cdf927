//! Reading rules.

use std::str::FromStr;

use crate::nearest;
use crate::rule::{FaultAction, FaultRule, FaultRules, Point, When};
use crate::rule_call::{CallKind, CallPattern, Ordinal};
use crate::rule_errno::FaultErrno;
use crate::rule_error::RuleError;
use crate::rule_path::PathPattern;
use crate::rule_words::{Word, split_rules};

impl FromStr for FaultRule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        let rules: FaultRules = text.parse()?;
        match <[Self; 1]>::try_from(rules.0) {
            Ok([rule]) => Ok(rule),
            Err(rules) => {
                let expected = format!("one rule, not {}", rules.len());
                Err(Word::end(1, 1).wrong(expected, &[]))
            }
        }
    }
}

impl TryFrom<String> for FaultRule {
    type Error = RuleError;

    fn try_from(text: String) -> Result<Self, RuleError> {
        text.parse()
    }
}

/// Empty rules, as after a last semicolon, are passed over.
impl FromStr for FaultRules {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        let rules = split_rules(text)?;
        let rules = rules.iter().map(|words| Parser { words, at: 0 }.rule());
        rules.collect::<Result<_, _>>().map(Self)
    }
}

impl TryFrom<String> for FaultRules {
    type Error = RuleError;

    fn try_from(text: String) -> Result<Self, RuleError> {
        text.parse()
    }
}

/// Words that a rule can begin with, besides an error's name.
const ACTIONS: [&str; 7] = [
    "kill",
    "errno",
    "short",
    "drop",
    "neighbor-commit",
    "writeback",
    "pause",
];

/// The words of one rule; the last is its end.
struct Parser<'a> {
    words: &'a [Word],
    at: usize,
}

impl Parser<'_> {
    fn peek(&self) -> &Word {
        &self.words[self.at]
    }

    fn take(&mut self) -> &Word {
        let at = self.at;
        self.at = (at + 1).min(self.words.len() - 1);
        &self.words[at]
    }

    fn rule(mut self) -> Result<FaultRule, RuleError> {
        let mut action = self.action()?;
        let when = self.when(action)?;
        let call_word = self.peek().clone();
        let mut call = self.call()?;
        self.options(&mut action, when, &mut call)?;
        if action.needs_write() && !call.kind.is_write() {
            let expected = "`write` or `pwrite`, since only they take bytes";
            return Err(call_word.wrong(expected, &[]));
        }
        let point = Point { when, call };
        Ok(FaultRule { action, point })
    }

    fn action(&mut self) -> Result<FaultAction, RuleError> {
        let word = self.take().clone();
        match word.text.as_str() {
            "kill" => Ok(FaultAction::Kill),
            "drop" => Ok(FaultAction::Drop),
            "neighbor-commit" => Ok(FaultAction::NeighborCommit),
            "writeback" => Ok(FaultAction::Writeback),
            "pause" => Ok(FaultAction::Pause),
            "short" => {
                let bytes = number(self.take(), "a number of bytes")?;
                Ok(FaultAction::Short { bytes })
            }
            "errno" => {
                let name = self.take();
                let errno = FaultErrno::named(&name.text).ok_or_else(|| {
                    let known: Vec<_> = FaultErrno::all().map(FaultErrno::name).collect();
                    let upper = name.text.to_ascii_uppercase();
                    name.wrong_meaning("an error's name, such as EIO", &upper, &known)
                })?;
                Ok(FaultAction::Errno { errno, short: None })
            }
            text => FaultErrno::named(text)
                .map(|errno| FaultAction::Errno { errno, short: None })
                .ok_or_else(|| unknown_action(&word)),
        }
    }

    fn when(&mut self, action: FaultAction) -> Result<When, RuleError> {
        let word = self.peek().clone();
        let said = match word.text.as_str() {
            "before" => Some(When::Before),
            "at" => Some(When::At),
            "after" => Some(When::After),
            _ => None,
        };
        // A dropped call has only one moment, so it need not be said.
        if said.is_none() && action == FaultAction::Drop {
            return Ok(When::At);
        }
        // An error before a call is one in its place.
        let meant = match (said, action) {
            (Some(When::Before), FaultAction::Errno { .. }) => Some(When::At),
            (said, _) => said,
        };
        let moments = action.moments();
        let Some(when) = meant.filter(|when| moments.contains(when)) else {
            let words: Vec<_> = moments.iter().map(|when| when.word()).collect();
            return Err(word.wrong(format!("`{}`", words.join("` or `")), &words));
        };
        self.take();
        Ok(when)
    }

    fn call(&mut self) -> Result<CallPattern, RuleError> {
        let word = self.take();
        let known: Vec<_> = CallKind::ALL.into_iter().map(CallKind::name).collect();
        let (name, ordinal) = match word.text.split_once('#') {
            Some((name, ordinal)) => (name, Some(ordinal)),
            None => (word.text.as_str(), None),
        };
        let kind = CallKind::named(name).ok_or_else(|| {
            word.wrong_meaning("a call and its number, such as fsync#2", name, &known)
        })?;
        let after_name = word.later(name.chars().count());
        let ordinal = ordinal.ok_or_else(|| {
            let expected = "`#` and a number, or `#*` for every call";
            after_name.wrong(expected, &[])
        })?;
        let at_number = after_name.later(1);
        let ordinal = match ordinal {
            "*" => Ordinal::Every,
            _ => match canonical(ordinal).filter(|&ordinal| ordinal > 0) {
                Some(ordinal) => Ordinal::Nth(ordinal),
                None => return Err(at_number.wrong("a number from 1 on, or `*`", &[])),
            },
        };
        Ok(CallPattern {
            kind,
            ordinal,
            path: None,
        })
    }

    fn options(
        &mut self,
        action: &mut FaultAction,
        when: When,
        call: &mut CallPattern,
    ) -> Result<(), RuleError> {
        loop {
            if self.at + 1 == self.words.len() {
                return Ok(());
            }
            let word = self.take().clone();
            if let Some(pattern) = word.text.strip_prefix("path=")
                && call.path.is_none()
            {
                call.path = Some(PathPattern::new(pattern));
                continue;
            }
            if let Some(bytes) = word.text.strip_prefix("short=")
                && let FaultAction::Errno { short, .. } = action
                && short.is_none()
                && when == When::At
            {
                *short = Some(
                    canonical(bytes)
                        .ok_or_else(|| word.later(6).wrong("a number of bytes", &[]))?,
                );
                continue;
            }
            let expected = match action {
                FaultAction::Errno { .. } if when == When::At => {
                    "`path=PATTERN`, `short=BYTES`, or the end of the rule"
                }
                _ => "`path=PATTERN` or the end of the rule",
            };
            return Err(word.wrong(expected, &["path=", "short="]));
        }
    }
}

fn unknown_action(word: &Word) -> RuleError {
    let errnos: Vec<_> = FaultErrno::all()
        .map(|errno| errno.name().to_ascii_lowercase())
        .collect();
    let mut known = ACTIONS.to_vec();
    known.extend(errnos.iter().map(String::as_str));
    let expected = "an action: kill, errno, short, drop, neighbor-commit, writeback, pause or an \
                    error's name";
    word.wrong(expected, &known)
}

fn number(word: &Word, expected: &str) -> Result<u64, RuleError> {
    canonical(&word.text).ok_or_else(|| word.wrong(expected, &[]))
}

/// A number written the way it would be printed, so that one rule has one text.
fn canonical<N: FromStr + ToString>(text: &str) -> Option<N> {
    text.parse()
        .ok()
        .filter(|number: &N| number.to_string() == text)
}

impl Word {
    fn wrong(&self, expected: impl Into<String>, known: &[&str]) -> RuleError {
        self.wrong_meaning(expected, &self.text, known)
    }

    /// The error for a word of which a part, or another spelling, is looked up among those known.
    fn wrong_meaning(&self, expected: impl Into<String>, meant: &str, known: &[&str]) -> RuleError {
        let suggestion = if meant.is_empty() {
            None
        } else {
            nearest(meant, known.iter().copied())
        };
        RuleError {
            line: self.line,
            column: self.column,
            expected: expected.into(),
            found: self.text.clone(),
            suggestion: suggestion.map(str::to_owned),
        }
    }
}
