//! Finds what a command has written, and sends it to the harness.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::SystemTime;

use untorn_vm::protocol::{BODY_BYTES_MAX, FromGuest};

use super::tell;

/// Sends the files of a directory that are new or changed. Those that only grow, `events.jsonl`,
/// are sent piece by piece and last, so that what they speak of is there already.
pub(super) struct Collector {
    directory: PathBuf,
    seen: BTreeMap<PathBuf, (u64, SystemTime)>,
    sent: BTreeMap<PathBuf, u64>,
}

impl Collector {
    /// What is there already is not sent.
    pub(super) fn new(directory: &Path) -> io::Result<Self> {
        let mut collector = Self {
            directory: directory.to_owned(),
            seen: BTreeMap::new(),
            sent: BTreeMap::new(),
        };
        for (path, bytes, changed) in files_below(directory)? {
            collector.sent.insert(path.clone(), bytes);
            collector.seen.insert(path, (bytes, changed));
        }
        Ok(collector)
    }

    /// True when a file of events has grown.
    pub(super) fn has_news(&self) -> bool {
        let runs = fs::read_dir(&self.directory)
            .into_iter()
            .flatten()
            .flatten();
        runs.map(|run| run.path().join("events.jsonl")).any(|path| {
            let bytes = fs::metadata(&path).map_or(0, |metadata| metadata.len());
            bytes > self.sent.get(&path).copied().unwrap_or(0)
        })
    }

    pub(super) fn sweep(&mut self, to: &Mutex<File>) -> io::Result<()> {
        let mut growing = Vec::new();
        for (path, bytes, changed) in files_below(&self.directory)? {
            if path
                .extension()
                .is_some_and(|extension| extension == "jsonl")
            {
                growing.push((path, bytes));
            } else if self.seen.get(&path) != Some(&(bytes, changed)) {
                self.send(&path, 0, bytes, false, to)?;
                self.seen.insert(path, (bytes, changed));
            }
        }
        for (path, bytes) in growing {
            let from = self.sent.get(&path).copied().unwrap_or(0);
            if bytes > from {
                self.send(&path, from, bytes, true, to)?;
                self.sent.insert(path, bytes);
            }
        }
        Ok(())
    }

    fn send(
        &self,
        path: &Path,
        from: u64,
        until: u64,
        mut append: bool,
        to: &Mutex<File>,
    ) -> io::Result<()> {
        let mut file = File::open(path)?;
        let mode = file.metadata()?.permissions().mode();
        file.seek(SeekFrom::Start(from))?;
        let mut rest = until - from;
        let name = path.strip_prefix(&self.directory).unwrap_or(path);
        let name = name.to_string_lossy().into_owned();
        loop {
            let mut body = Vec::new();
            let length = rest.min(BODY_BYTES_MAX as u64);
            Read::by_ref(&mut file)
                .take(length)
                .read_to_end(&mut body)?;
            rest -= length;
            let head = FromGuest::File {
                path: name.clone(),
                mode,
                append,
            };
            tell(to, &head, &body)?;
            append = true;
            if rest == 0 {
                return Ok(());
            }
        }
    }
}

/// Regular files with size and time of the last change.
fn files_below(directory: &Path) -> io::Result<Vec<(PathBuf, u64, SystemTime)>> {
    let mut files = Vec::new();
    let mut directories = vec![directory.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            let metadata = entry.metadata()?;
            if metadata.is_dir() {
                directories.push(entry.path());
            } else if metadata.is_file() {
                files.push((entry.path(), metadata.len(), metadata.modified()?));
            }
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use untorn_vm::protocol;

    use super::*;

    /// What a sweep sends: paths, whether it appends, and contents.
    fn swept(collector: &mut Collector) -> Vec<(String, bool, String)> {
        let wire = tempfile::NamedTempFile::new().unwrap();
        collector
            .sweep(&Mutex::new(wire.reopen().unwrap()))
            .unwrap();
        let mut wire = File::open(wire.path()).unwrap();
        let mut sent = Vec::new();
        while let Ok((head, body)) = protocol::receive::<FromGuest>(&mut wire) {
            let FromGuest::File { path, append, .. } = head else {
                panic!("{head:?}")
            };
            sent.push((path, append, String::from_utf8(body).unwrap()));
        }
        sent
    }

    #[test]
    fn only_news_are_sent_and_events_last() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("old"), "old").unwrap();
        let mut collector = Collector::new(folder.path()).unwrap();
        let run = folder.path().join("run");
        fs::create_dir(&run).unwrap();
        assert!(!collector.has_news());
        fs::write(run.join("events.jsonl"), "1\n").unwrap();
        fs::write(run.join("manifest.json"), "{}").unwrap();
        assert!(collector.has_news());
        let entry = |path: &str, append, text: &str| (path.to_owned(), append, text.to_owned());
        assert_eq!(
            swept(&mut collector),
            [
                entry("run/manifest.json", false, "{}"),
                entry("run/events.jsonl", true, "1\n")
            ]
        );
        assert!(!collector.has_news());
        fs::write(run.join("events.jsonl"), "1\n2\n").unwrap();
        assert_eq!(
            swept(&mut collector),
            [entry("run/events.jsonl", true, "2\n")]
        );
        assert_eq!(swept(&mut collector), []);
    }
}
