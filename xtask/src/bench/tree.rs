//! What is searched and read: made anew on every machine from a fixed seed, so that everybody measures the
//! same, and kept under `target/` once made.

use crate::sh;
use anyhow::Result;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

/// Changes when the generators do, so that what they made before is made again.
const VERSION: &str = "2";
const FAMILIES: usize = 50;
const GENERA: usize = 20;
const FILES: usize = 56;
/// Every so many files hold a needle, and every so many are of the kind that is globbed for. Neither
/// number shares a factor with the pattern of names, so that some of each are hidden and some ignored.
const NEEDLE_EVERY: usize = 129;
const TOML_EVERY: usize = 101;
const WORDS: &[&str] = &[
    "alder", "birch", "cedar", "delta", "ember", "fjord", "grove", "heath", "islet", "juniper", "knoll", "larch",
    "maple", "north", "oaken", "pines", "quartz", "ridge", "stone", "thorn", "under", "vale", "willow", "yarrow",
];

/// An empty directory that counts as a project of its own.
pub(super) fn project(name: &str) -> Result<PathBuf> {
    let dir = sh::root().join("target").join(name);
    // A repository of its own, or the ignore file above would hide all of `target/`.
    fs::create_dir_all(dir.join(".git"))?;
    fs::write(dir.join(".git/HEAD"), "ref: refs/heads/main\n")?;
    Ok(dir)
}

/// A tree of 56 000 files in a thousand directories: 51 000 to be searched, some of them hidden, the rest ignored.
pub(super) fn forest() -> Result<PathBuf> {
    planted("bench-tree", FAMILIES)
}

/// The same again, for commands that change it; and its first thousand files.
pub(super) fn changing_forests() -> Result<(PathBuf, PathBuf)> {
    Ok((planted("bench-changing-small", 1)?, planted("bench-changing-tree", FAMILIES)?))
}

fn planted(name: &str, families: usize) -> Result<PathBuf> {
    made_once(name, |dir| {
        fs::write(dir.join(".gitignore"), "build/\n*.log\n")?;
        let mut chance = Chance(0x9e37_79b9_7f4a_7c15);
        for family in 0..families {
            for genus in 0..GENERA {
                let place = dir.join(format!("family-{family:02}/genus-{genus:02}"));
                fs::create_dir_all(place.join("build"))?;
                for file in 0..FILES {
                    let number = (family * GENERA + genus) * FILES + file;
                    fs::write(place.join(self::name(number, file)), body(&mut chance, number))?;
                }
            }
        }
        Ok(())
    })
}

/// One in 26 lies where the ignore file says not to look, one in 26 is ignored by its name, one is hidden.
fn name(number: usize, file: usize) -> String {
    let extension = if number.is_multiple_of(TOML_EVERY) { "toml" } else { ["rs", "txt", "md", "json"][number % 4] };
    match file % 26 {
        3 => format!("build/out-{file:02}.{extension}"),
        7 => format!("trace-{file:02}.log"),
        11 => format!(".species-{file:02}.{extension}"),
        _ => format!("species-{file:02}.{extension}"),
    }
}

/// Half a kilobyte to eight of words, with a needle now and then.
fn body(chance: &mut Chance, number: usize) -> String {
    let size = 512 + chance.below(7680);
    let mut text = String::with_capacity(size + 80);
    while text.len() < size {
        for _ in 0..8 {
            text.push_str(WORDS[chance.below(WORDS.len())]);
            text.push(' ');
        }
        text.push('\n');
    }
    if number.is_multiple_of(NEEDLE_EVERY) {
        let _ = writeln!(text, "here lies needle-{number:06} among the hay");
    }
    text
}

const LARGE: &str = "lines.txt";
const LARGE_LINES: usize = 1_300_000;
/// So many lines of so many bytes are one gigabyte, and 51 of them fit in one reply.
const LINE_BYTES: usize = 826;

/// A file of one gigabyte, every byte of it written: a hole would be read for nothing.
pub(super) fn large_file() -> Result<(PathBuf, &'static str)> {
    let dir = made_once("bench-large", |dir| {
        let mut out = BufWriter::with_capacity(1 << 20, File::create(dir.join(LARGE))?);
        let filler = WORDS.join(" ").repeat(LINE_BYTES / 100);
        for number in 1..=LARGE_LINES {
            let mark = line_mark(number);
            writeln!(out, "{mark} {}", &filler[..LINE_BYTES - mark.len() - 2])?;
        }
        Ok(out.flush()?)
    })?;
    Ok((dir, LARGE))
}

/// How each line of the large file begins.
pub(super) fn line_mark(number: usize) -> String {
    format!("line-{number:07}")
}

/// A directory whose content is complete if its stamp says so, and is made from nothing otherwise.
fn made_once(name: &str, make: impl FnOnce(&Path) -> Result<()>) -> Result<PathBuf> {
    let stamp = sh::root().join("target").join(format!("{name}.version"));
    let dir = sh::root().join("target").join(name);
    if fs::read_to_string(&stamp).is_ok_and(|version| version == VERSION) && dir.is_dir() {
        return Ok(dir);
    }
    println!("making target/{name}");
    if dir.exists() {
        fs::remove_dir_all(&dir)?;
    }
    make(&project(name)?)?;
    fs::write(stamp, VERSION)?;
    Ok(dir)
}

/// A sequence that looks like chance and is the same everywhere (xorshift).
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap_or_default() % limit.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_forest_has_what_the_searches_look_for() {
        let files = FAMILIES * GENERA * FILES;
        let names = (0..files).map(|number| name(number, number % FILES));
        let ignored = |name: &str| name.starts_with("build/") || name.starts_with("trace-");
        for every in [NEEDLE_EVERY, TOML_EVERY] {
            let (out, found): (Vec<_>, Vec<_>) = names.clone().step_by(every).partition(|name| ignored(name));
            let hidden = found.iter().filter(|name| name.starts_with('.')).count();
            assert!((200..1000).contains(&found.len()) && !out.is_empty() && hidden > 0, "{found:?}");
        }
        assert!(names.filter(|name| !ignored(name)).count() >= 50_000, "{files}");
    }

    #[test]
    fn bodies_are_the_same_everywhere() {
        let body = || body(&mut Chance(1), NEEDLE_EVERY);
        assert_eq!(body(), body());
        assert!((512..8300).contains(&body().len()));
        assert!(body().contains("needle-000129"));
    }

    #[test]
    fn the_large_files_lines_fit_its_size() {
        const { assert!(LARGE_LINES * LINE_BYTES >= 1_000_000_000) };
        assert!(WORDS.join(" ").repeat(LINE_BYTES / 100).len() >= LINE_BYTES);
    }
}
