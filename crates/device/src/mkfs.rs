//! Small deterministic images, cached by the parameters they were made with.

use std::fs::{self, File};
use std::io::{BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use untorn_block::{Image, PAGE};
use untorn_spec::Profile;

use crate::DeviceError;

/// Where images are kept between runs: `$UNTORN_CACHE`, or `untorn` in the user's cache folder.
pub fn cache_dir() -> PathBuf {
    let from = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    if let Some(dir) = from("UNTORN_CACHE") {
        return dir.into();
    }
    match (from("XDG_CACHE_HOME"), from("HOME")) {
        (Some(dir), _) => Path::new(&dir).join("untorn"),
        (None, Some(home)) => Path::new(&home).join(".cache/untorn"),
        (None, None) => std::env::temp_dir().join("untorn-cache"),
    }
}

/// The command line that makes the profile's image, without the image's name.
pub fn mkfs_command(profile: &Profile) -> Vec<String> {
    let mut command = vec![profile.fs.mkfs().to_owned()];
    command.extend(profile.mkfs.iter().map(|argument| (*argument).to_owned()));
    command
}

/// Variable that names a directory of ready-made images, `PROFILE.image`, for machines that have
/// no programs to make them, such as guests.
pub const IMAGES_VARIABLE: &str = "UNTORN_IMAGES";

/// The ready-made image of a profile, where one is given.
pub(crate) fn given_image(profile: &Profile) -> Option<PathBuf> {
    let directory = std::env::var_os(IMAGES_VARIABLE).filter(|value| !value.is_empty())?;
    let path = Path::new(&directory).join(format!("{}.image", profile.name));
    path.is_file().then_some(path)
}

/// Makes the profile's empty file system, or takes it from those that are given, or from the
/// cache.
///
/// # Errors
/// When mkfs is missing or fails, there is no room for the image, or the given one is broken.
pub fn make_image(profile: &Profile) -> Result<Image, DeviceError> {
    if let Some(given) = given_image(profile) {
        return File::open(&given)
            .and_then(|file| Image::read_from(&mut BufReader::with_capacity(1 << 20, file)))
            .map_err(|source| DeviceError::io("read the image", &given, source));
    }
    let command = mkfs_command(profile);
    let version = mkfs_version(profile)?;
    let key = format!("{}\n{}\n{}", command.join(" "), profile.image_mib, version);
    let dir = cache_dir();
    let cached = dir.join(format!("{}-{}.image", profile.name, digest(&key)));
    if let Ok(file) = File::open(&cached)
        && let Ok(image) = Image::read_from(&mut BufReader::with_capacity(1 << 20, file))
    {
        return Ok(image);
    }
    let image = run_mkfs(profile, &command)?;
    // The cache only saves time: a full disk or a read-only home must not stop the run.
    if let Err(_unwritable) = store(&image, &dir, &cached) {
        drop(fs::remove_file(&cached));
    }
    Ok(image)
}

fn run_mkfs(profile: &Profile, command: &[String]) -> Result<Image, DeviceError> {
    let temporary = std::env::temp_dir();
    let mut file = tempfile::Builder::new()
        .prefix("untorn-mkfs-")
        .tempfile_in(&temporary)
        .map_err(|source| DeviceError::io("create an image in", &temporary, source))?;
    let bytes = u64::from(profile.image_mib) << 20;
    file.as_file()
        .set_len(bytes)
        .map_err(|source| DeviceError::io("size an image in", &temporary, source))?;
    let output = Command::new(profile.fs.mkfs())
        .args(&command[1..])
        .arg(file.path())
        // Part of the environment that mke2fs reads to be reproducible (mke2fs(8)).
        .env("SOURCE_DATE_EPOCH", "1600000000")
        .env("E2FSPROGS_FAKE_TIME", "1600000000")
        .env("DETERMINISTIC_SEED", "1")
        .output()
        .map_err(|source| no_mkfs(profile, source))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        let command = format!("{} {}", command.join(" "), file.path().display());
        return Err(DeviceError::Mkfs {
            command,
            status: output.status,
            stderr,
        });
    }
    read_sparse(file.as_file_mut(), bytes)
        .map_err(|source| DeviceError::io("read an image in", &temporary, source))
}

fn no_mkfs(profile: &Profile, source: std::io::Error) -> DeviceError {
    if source.kind() == std::io::ErrorKind::NotFound {
        let (program, package) = (profile.fs.mkfs(), profile.fs.package());
        return DeviceError::NoMkfs { program, package };
    }
    DeviceError::io("run", Path::new(profile.fs.mkfs()), source)
}

/// What `mkfs -V` prints: another version may make another image.
fn mkfs_version(profile: &Profile) -> Result<String, DeviceError> {
    let output = Command::new(profile.fs.mkfs())
        .arg("-V")
        .output()
        .map_err(|source| no_mkfs(profile, source))?;
    Ok(format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    ))
}

fn digest(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex()[..16].to_owned()
}

/// Reads a file's data and skips its holes.
fn read_sparse(file: &mut File, bytes: u64) -> std::io::Result<Image> {
    let mut image = Image::zeroed(bytes);
    let mut page = vec![0; 64 * PAGE];
    let mut at = 0;
    while let Ok(data) = rustix::fs::seek(&*file, rustix::fs::SeekFrom::Data(at)) {
        let hole = rustix::fs::seek(&*file, rustix::fs::SeekFrom::Hole(data)).unwrap_or(bytes);
        file.seek(SeekFrom::Start(data))?;
        at = data;
        while at < hole {
            let length = usize::try_from((hole - at).min(page.len() as u64)).unwrap_or(PAGE);
            file.read_exact(&mut page[..length])?;
            image.write(at, &page[..length]);
            at += length as u64;
        }
    }
    Ok(image)
}

fn store(image: &Image, dir: &Path, cached: &Path) -> std::io::Result<()> {
    fs::create_dir_all(dir)?;
    let temporary = tempfile::NamedTempFile::new_in(dir)?;
    let mut writer = BufWriter::with_capacity(1 << 20, temporary.as_file());
    image.write_to(&mut writer)?;
    writer.flush()?;
    drop(writer);
    temporary.persist(cached)?;
    Ok(())
}
