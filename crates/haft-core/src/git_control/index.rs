//! The index of a repository: git writes the files that it names, and believes that none of them is in `.git` or outside.

use super::GitRefusal;

/// What comes before the name of an entry: times, numbers, mode and size.
const FIXED: usize = 40;
const FLAGS: usize = 2;
/// The sizes of object names.
const HASHES: [usize; 2] = [20, 32];
const EXTENDED: u16 = 0x4000;

/// Whether an index names nothing but files of the work tree, in every way in which it can be read.
pub(super) fn judge(content: &[u8]) -> Result<(), GitRefusal> {
    if content.is_empty() {
        return Ok(());
    }
    let mut is_read = false;
    for hash in HASHES {
        let Some(names) = names(content, hash) else { continue };
        is_read = true;
        if let Some(odd) = names.iter().find(|name| !is_inside(name)) {
            let name = super::shown(&String::from_utf8_lossy(odd));
            return Err(GitRefusal::whole(format!("it names `{name}`, which is no file of the work tree")));
        }
    }
    if is_read { Ok(()) } else { Err(GitRefusal::whole("it cannot be read as an index")) }
}

/// Whether a name is that of a file in the work tree, on every file system.
pub(super) fn is_inside(name: &[u8]) -> bool {
    let text = String::from_utf8_lossy(name);
    let is_plain = |part: &str| {
        let clear: String = part.chars().filter(|c| c.is_ascii_graphic() || *c == ' ').collect();
        let clear = clear.trim_end_matches(['.', ' ']).to_ascii_lowercase();
        !part.is_empty() && part != "." && part != ".." && clear != ".git" && clear != "git~1"
    };
    // A sparse directory ends with a slash.
    let text = text.strip_suffix('/').unwrap_or(&text);
    !text.is_empty() && text.split('/').all(is_plain)
}

/// The names of all entries, if object names are this long.
fn names(content: &[u8], hash: usize) -> Option<Vec<Vec<u8>>> {
    let number = |at: usize| Some(u32::from_be_bytes(content.get(at..at + 4)?.try_into().ok()?));
    let version = number(4).filter(|version| content.starts_with(b"DIRC") && (2..=4).contains(version))?;
    let count = usize::try_from(number(8)?).ok()?;
    let (mut at, mut found) = (12, Vec::new());
    let mut previous: Vec<u8> = Vec::new();
    for _ in 0..count {
        let begin = at;
        let flags_at = at + FIXED + hash;
        let flags = u16::from_be_bytes(content.get(flags_at..flags_at + FLAGS)?.try_into().ok()?);
        at = flags_at + FLAGS + if version >= 3 && flags & EXTENDED != 0 { 2 } else { 0 };
        let mut name = Vec::new();
        if version == 4 {
            let (dropped, next) = varint(content, at)?;
            name.extend(previous.get(..previous.len().checked_sub(dropped)?)?);
            at = next;
        }
        let length = content.get(at..)?.iter().position(|byte| *byte == 0)?;
        name.extend(&content[at..at + length]);
        at += length + 1;
        if version < 4 {
            // Entries are filled up to eight bytes.
            at = begin + (at - begin).div_ceil(8) * 8;
        }
        previous.clone_from(&name);
        found.push(name);
    }
    is_rest(content, at, hash).then_some(found)
}

/// The number of bytes that a name does not share with the one before, in git's own encoding.
fn varint(content: &[u8], mut at: usize) -> Option<(usize, usize)> {
    let mut byte = *content.get(at)?;
    at += 1;
    let mut value = usize::from(byte & 127);
    while byte & 128 != 0 {
        byte = *content.get(at)?;
        at += 1;
        value = value.checked_add(1)?.checked_mul(128)? + usize::from(byte & 127);
    }
    Some((value, at))
}

/// Whether what follows the entries is extensions and a checksum.
fn is_rest(content: &[u8], mut at: usize, hash: usize) -> bool {
    while at + hash < content.len() {
        let Some(size) = content.get(at + 4..at + 8).and_then(|bytes| bytes.try_into().ok()).map(u32::from_be_bytes)
        else {
            return false;
        };
        let Some(next) = usize::try_from(size).ok().and_then(|size| (at + 8).checked_add(size)) else { return false };
        at = next;
    }
    at + hash == content.len()
}
