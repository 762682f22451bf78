//! Where the pages of one browser came from. A service inside is open to a browser that has been nowhere else: whatever
//! came from elsewhere could ask it for things in the agent's name, and may still be at work when its page has gone.

use haft_core::web::Target;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Where the pages of one browser came from.
#[derive(Debug, Default)]
pub(super) struct Visits(Mutex<Been>);

#[derive(Debug, Default, PartialEq, Eq)]
enum Been {
    #[default]
    Nowhere,
    /// At one host and port, and nowhere else.
    At(String),
    /// At several, or it is not known where.
    About,
}

impl Visits {
    fn been(&self) -> MutexGuard<'_, Been> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A page asks for this address.
    pub(super) fn go(&self, url: &str) {
        let to = Target::read(url).ok().map(|target| target.authority());
        let mut been = self.been();
        *been = match (std::mem::take(&mut *been), to) {
            (Been::Nowhere, Some(to)) => Been::At(to),
            (Been::At(at), Some(to)) if at == to => Been::At(at),
            _ => Been::About,
        };
    }

    /// A page goes where nobody looks.
    pub(super) fn stray(&self) {
        *self.been() = Been::About;
    }

    /// Whether every page came from there.
    pub(super) fn only(&self, target: &Target) -> bool {
        *self.been() == Been::At(target.authority())
    }

    /// Whether that would be so if the next page came from there.
    pub(super) fn could_be_only(&self, target: &Target) -> bool {
        *self.been() == Been::Nowhere || self.only(target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_page_from_elsewhere_counts_for_good() {
        let own = Target::read("http://127.0.0.1:8080/").unwrap();
        let visits = Visits::default();
        assert!(!visits.only(&own) && visits.could_be_only(&own));
        visits.go("http://127.0.0.1:8080/a");
        visits.go("http://0x7f.1:8080/b");
        assert!(visits.only(&own));
        assert!(!visits.only(&Target::read("http://127.0.0.1:8081/").unwrap()));
        visits.go("https://elsewhere.example/");
        visits.go("http://127.0.0.1:8080/a");
        assert!(!visits.only(&own) && !visits.could_be_only(&own));
        for odd in ["blob:http://127.0.0.1:8080/x", "", "file:///etc/passwd"] {
            let visits = Visits::default();
            visits.go(odd);
            assert!(!visits.could_be_only(&own), "{odd}");
        }
    }
}
