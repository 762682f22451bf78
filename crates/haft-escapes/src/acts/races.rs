//! Between check and use: somebody moves things while changes are kept.

use super::write::IntoTried;
use super::{Act, Prop, Sight};
use crate::attack::{Brief, Tried};
use std::time::Duration;

pub(crate) const ACTS: &[Act] = &[
    // The harness exchanges `dir` with a link to outside as fast as it can.
    Act::new("races.swapped_directory", swapped).with(Prop::Swapper).seen(Sight::Changed).judged_outside().rounds(12),
    // The project itself is replaced by a link to outside while the program runs.
    Act::new("races.replaced_project", replaced).with(Prop::Replacer).seen(Sight::Changed).judged_outside(),
    Act::new("races.link_then_write", link_then_write).seen(Sight::Changed).judged_outside(),
    Act::new("races.link_left_behind", link_left_behind).seen(Sight::Changed).judged_outside(),
];

fn swapped(b: &Brief) -> Tried {
    let dir = b.file("project", "dir")?;
    for index in 0..200 {
        let _ = std::fs::write(dir.join("data.txt"), "evil");
        let _ = std::fs::write(dir.join(format!("evil-{index}")), "evil");
    }
    Ok("wrote".to_owned())
}

fn replaced(b: &Brief) -> Tried {
    std::fs::write("data.txt", "evil")?;
    std::thread::sleep(Duration::from_millis(600));
    std::fs::write("data.txt", "evil")?;
    std::fs::write(b.file("project", "data.txt")?, "evil").tried()
}

/// Writes through a name that was a directory, and leaves a link there.
fn link_then_write(b: &Brief) -> Tried {
    let dir = b.file("project", "dir")?;
    std::fs::write(dir.join("data.txt"), "evil")?;
    std::fs::remove_dir_all(&dir)?;
    std::os::unix::fs::symlink(b.path("outside")?, &dir)?;
    std::fs::write(dir.join("data.txt"), "evil").tried()
}

/// A link in place of a file: to keep the file's new content must not follow it.
fn link_left_behind(b: &Brief) -> Tried {
    let file = b.file("project", "file.txt")?;
    std::fs::remove_file(&file)?;
    std::os::unix::fs::symlink(b.file("outside", "data.txt")?, &file)?;
    std::fs::write(&file, "evil").tried()
}
