//! Keeps what comes out of a guest in a folder.

use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Writes a part of a file below `folder`, and makes what is above it.
///
/// # Errors
/// Those of the calls.
pub fn write_part(
    folder: &Path,
    path: &Path,
    mode: u32,
    append: bool,
    bytes: &[u8],
) -> io::Result<PathBuf> {
    let path = folder.join(path);
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    let mut file = if append {
        File::options().create(true).append(true).open(&path)?
    } else {
        File::create(&path)?
    };
    file.write_all(bytes)?;
    file.set_permissions(Permissions::from_mode(mode & 0o777))?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_make_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = Path::new("run/deep/file");
        for (append, text) in [(true, "lost"), (false, "one "), (true, "two")] {
            write_part(folder.path(), path, 0o100_640, append, text.as_bytes()).unwrap();
        }
        let path = folder.path().join(path);
        assert_eq!(fs::read_to_string(&path).unwrap(), "one two");
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o640);
    }
}
