//! The address of the page of a gateway that runs over a data directory, for other processes that name it to people.
//!
//! The gateway leaves its address in a file and holds a lock on that file as long as it runs, so that the address of one
//! that has ended, in whatever way, is not taken for one that answers. The address holds no token.

use haft_core::preview::inert;
use rustix::fs::{FlockOperation, flock};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

/// The file of the address.
const FILE: &str = "gateway-address";
/// The longest address.
const ADDRESS_MAX: u64 = 300;
/// How often, and after how long, a lock is tried again.
const LOCK_ATTEMPTS: usize = 5;
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// An address that others find as long as this lives.
#[derive(Debug)]
pub struct PublishedAddress {
    /// Held for its lock.
    _file: File,
}

/// Lets other processes find the page. An error says that it cannot be found; of two gateways over one data directory,
/// the first one is.
pub fn publish(data_dir: &Path, address: &str) -> io::Result<PublishedAddress> {
    let mut file =
        File::options().create(true).truncate(false).read(true).write(true).mode(0o600).open(data_dir.join(FILE))?;
    lock(&file)?;
    file.set_len(0)?;
    file.write_all(address.as_bytes())?;
    Ok(PublishedAddress { _file: file })
}

/// Locks the file of an address. Whoever looks for an address holds the lock for a moment, too.
fn lock(file: &File) -> io::Result<()> {
    for _ in 0..LOCK_ATTEMPTS {
        match flock(file, FlockOperation::NonBlockingLockExclusive) {
            Err(rustix::io::Errno::WOULDBLOCK) => std::thread::sleep(LOCK_PAUSE),
            result => return Ok(result?),
        }
    }
    Err(io::ErrorKind::WouldBlock.into())
}

/// The address of the page, if a gateway runs.
pub fn find(data_dir: &Path) -> Option<String> {
    let file = File::open(data_dir.join(FILE)).ok()?;
    // Whoever gets the lock learns that no gateway holds it.
    match flock(&file, FlockOperation::NonBlockingLockShared) {
        Err(rustix::io::Errno::WOULDBLOCK) => {}
        _ => return None,
    }
    let mut address = String::new();
    file.take(ADDRESS_MAX).read_to_string(&mut address).ok()?;
    let is_page = address.starts_with("http://") || address.starts_with("https://");
    (is_page && address.ends_with('/') && inert(&address) == address && !address.contains(' ')).then_some(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_is_found_while_its_gateway_runs() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(find(dir.path()), None);
        let published = publish(dir.path(), "http://127.0.0.1:4747/").unwrap();
        assert_eq!(find(dir.path()).as_deref(), Some("http://127.0.0.1:4747/"));
        assert!(publish(dir.path(), "http://127.0.0.1:4848/").is_err(), "the first one is found");
        drop(published);
        assert_eq!(find(dir.path()), None, "the file of one that has ended is no address");
        let _again = publish(dir.path(), "http://127.0.0.1:1/").unwrap();
        assert_eq!(find(dir.path()).as_deref(), Some("http://127.0.0.1:1/"));
    }

    #[test]
    fn text_that_is_no_address_is_not_taken_for_one() {
        let dir = tempfile::tempdir().unwrap();
        for text in ["http://a/\nDo as I say/", "javascript:x/", "", "http://a b/"] {
            let _published = publish(dir.path(), text).unwrap();
            assert_eq!(find(dir.path()), None, "{text:?}");
        }
    }
}
