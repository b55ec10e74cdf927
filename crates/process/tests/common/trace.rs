//! Tracing in tests.

use std::path::{Path, PathBuf};

use untorn_process::{
    CommandSpec, Decision, Interrupt, TraceEvent, TraceWarning, TracedCommand, TracedExit,
};
use untorn_spec::Syscall;

/// A directory to trace in.
pub(crate) struct Ground {
    _directory: tempfile::TempDir,
    pub(crate) root: PathBuf,
}

/// All that a trace told.
#[derive(Debug)]
pub(crate) struct Trace {
    pub(crate) calls: Vec<Syscall>,
    pub(crate) warnings: Vec<TraceWarning>,
    pub(crate) exit: TracedExit,
}

impl Ground {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        Self {
            _directory: directory,
            root,
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// A command that runs in the directory.
    pub(crate) fn command(&self, words: &[&str]) -> CommandSpec<'static> {
        let mut spec = CommandSpec::new(words[0], &words[1..]);
        spec.cwd = Some(self.root.clone());
        spec
    }

    pub(crate) fn spawn(&self, words: &[&str]) -> TracedCommand {
        let interrupt = Interrupt::detached().unwrap();
        TracedCommand::spawn(&self.command(words), &self.root, &interrupt).unwrap()
    }

    /// Runs a command to its end.
    pub(crate) fn trace(&self, words: &[&str]) -> Trace {
        trace(self.spawn(words))
    }

    pub(crate) fn shell(&self, script: &str) -> Trace {
        self.trace(&["sh", "-c", script])
    }

    pub(crate) fn python(&self, script: &str) -> Trace {
        self.trace(&["python3", "-c", script])
    }

    /// Runs a command with the faults of one call.
    pub(crate) fn with_fault(&self, words: &[&str], name: &str, fault: Decision) -> Trace {
        let name = name.to_owned();
        let decide = move |call: &Syscall| {
            assert_eq!(call.errno, None);
            if call.name == name {
                fault
            } else {
                Decision::default()
            }
        };
        let interrupt = Interrupt::detached().unwrap();
        let spec = self.command(words);
        trace(TracedCommand::spawn_with(&spec, &self.root, decide, &interrupt).unwrap())
    }
}

pub(crate) fn trace(mut command: TracedCommand) -> Trace {
    let (mut calls, mut warnings) = (Vec::new(), Vec::new());
    loop {
        match command.next().unwrap() {
            TraceEvent::Returned(call) => calls.push(call),
            TraceEvent::Warning(warning) => warnings.push(warning),
            TraceEvent::Exited(exit) => {
                return Trace {
                    calls,
                    warnings,
                    exit,
                };
            }
        }
        command.go();
    }
}

impl Trace {
    /// The calls, one a line, with errors, of a command that succeeded.
    pub(crate) fn lines(&self) -> Vec<String> {
        assert!(self.exit.status.success(), "{self:?}");
        let all = 0..u32::try_from(self.calls.len()).unwrap();
        let mut indices: Vec<u32> = self.calls.iter().map(|call| call.index).collect();
        indices.sort_unstable();
        assert_eq!(indices, all.collect::<Vec<_>>());
        self.calls
            .iter()
            .map(|call| match call.errno {
                None => call.text.clone(),
                Some(errno) => format!("{} = {errno}", call.text),
            })
            .collect()
    }

    /// How many calls of a word there were.
    pub(crate) fn count(&self, word: &str) -> usize {
        let of_word = |call: &&Syscall| call.name.split('#').next() == Some(word);
        self.calls.iter().filter(of_word).count()
    }
}

/// True when the program is there. CI has it; elsewhere what needs it says that it was left out.
pub(crate) fn has(test: &str, program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|one: PathBuf| Path::exists(&one.join(program)));
    if !found {
        eprintln!("NOT RUN: {test} needs {program}");
    }
    found
}
