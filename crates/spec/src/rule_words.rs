//! Splitting a list of rules into words, with the place of each.

use crate::rule_error::RuleError;

/// A word of a rule; the empty one is the rule's end.
#[derive(Debug, Clone)]
pub(crate) struct Word {
    pub(crate) text: String,
    pub(crate) line: usize,
    pub(crate) column: usize,
}

impl Word {
    pub(crate) fn end(line: usize, column: usize) -> Self {
        Self {
            text: String::new(),
            line,
            column,
        }
    }

    /// The rest of the word from its n-th character on.
    pub(crate) fn later(&self, characters: usize) -> Self {
        Self {
            text: self.text.chars().skip(characters).collect(),
            line: self.line,
            column: self.column + characters,
        }
    }
}

/// The words of each rule, every rule with its end, and no rule without words before that.
pub(crate) fn split_rules(text: &str) -> Result<Vec<Vec<Word>>, RuleError> {
    let mut rules = Vec::new();
    let mut words: Vec<Word> = Vec::new();
    let mut word: Option<Word> = None;
    let (mut line, mut column) = (1, 1);
    let mut characters = text.chars();
    loop {
        let character = characters.next();
        let (here_line, here_column) = (line, column);
        match character {
            Some('\n') => (line, column) = (line + 1, 1),
            Some(_) => column += 1,
            None => {}
        }
        match character {
            Some('"') => {
                let word = word.get_or_insert_with(|| Word::end(here_line, here_column));
                loop {
                    column += 1;
                    match characters.next() {
                        Some('"') => break,
                        Some('\\') => {
                            column += 1;
                            match characters.next() {
                                Some('n') => word.text.push('\n'),
                                Some(c @ ('"' | '\\')) => word.text.push(c),
                                other => return Err(wrong_escape(other, line, column - 1)),
                            }
                        }
                        Some(c) if c != '\n' => word.text.push(c),
                        _ => return Err(unclosed(here_line, here_column)),
                    }
                }
            }
            Some(c) if c != ';' && !c.is_whitespace() => word
                .get_or_insert_with(|| Word::end(here_line, here_column))
                .text
                .push(c),
            _ => {
                words.extend(word.take());
                if matches!(character, Some(';' | '\n') | None) && !words.is_empty() {
                    words.push(Word::end(here_line, here_column));
                    rules.push(std::mem::take(&mut words));
                }
                if character.is_none() {
                    return Ok(rules);
                }
            }
        }
    }
}

fn wrong_escape(found: Option<char>, line: usize, column: usize) -> RuleError {
    RuleError {
        line,
        column,
        expected: "`\\\\`, `\\\"` or `\\n`".to_owned(),
        found: found.map(|c| format!("\\{c}")).unwrap_or_default(),
        suggestion: None,
    }
}

fn unclosed(line: usize, column: usize) -> RuleError {
    RuleError {
        line,
        column,
        expected: "a closing quote on the same line".to_owned(),
        found: String::new(),
        suggestion: None,
    }
}
