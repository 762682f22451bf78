//! What a call would do to the page that its session's browser shows, for those who decide about it.

use super::Browsers;
use super::pool::no_page;
use super::tabs::Tab;
use crate::web::{Web, texts};
use haft_core::tool::Effect;
use haft_core::web::{Errand, Target, doubts};
use haft_core::{CallError, Checked};

impl Browsers {
    /// The errand of a call about the page that is shown. Acting on a page counts as writing to its host.
    pub(crate) fn errand(&self, web: &Web, checked: &Checked) -> Result<Errand, CallError> {
        let (spec, call) = (checked.spec(), checked.call());
        let browser = self.peek(&call.session).filter(|browser| browser.wire.is_open()).ok_or_else(no_page)?;
        let tab = browser.wire.tabs(|tabs| tabs.current().cloned()).ok_or_else(no_page)?;
        let method = spec.name.as_str().rsplit('.').next().unwrap_or_default().to_ascii_uppercase();
        let writes = spec.effects.effect == Effect::Acts;
        let Some(target) = owner(&tab) else {
            // Looking at what belongs to nobody tells nobody anything. Acting on it might: who hears it is not known.
            let odd = "the page belongs to no host that is known; browser.content looks who it is, browser.navigate \
                       opens another";
            let refusal = writes.then(|| odd.to_owned());
            let (url, authority) = (NOBODY.to_owned(), NOBODY.to_owned());
            return Ok(Errand { method, url, authority, writes, refusal, doubts: Vec::new(), secrets: Vec::new() });
        };
        let refusal = web.rules(&call.caller, &spec.name).admits(&target).err();
        Ok(Errand {
            method,
            url: target.to_string(),
            authority: target.authority(),
            writes,
            refusal: refusal.map(|refusal| format!("{refusal}; {}", refusal.hint())),
            doubts: if writes { doubts(&target, texts(checked.args(), "")) } else { Vec::new() },
            secrets: Vec::new(),
        })
    }
}

/// What stands for a host where there is none.
const NOBODY: &str = "about:blank";

/// Whom a page belongs to: the host of its address, or of its origin where the address is not of the web. An empty page
/// that a page opens has its opener's origin, and its opener may hear everything in it.
pub(super) fn owner(tab: &Tab) -> Option<Target> {
    let scheme = tab.url.split(':').next().unwrap_or_default();
    let whose = if matches!(scheme, "http" | "https") { &tab.url } else { &tab.origin };
    Target::read(whose).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_belongs_to_its_host_or_to_whoever_opened_it_or_to_nobody() {
        let owner = |url: &str, origin: &str| {
            let tab = Tab { url: url.to_owned(), origin: origin.to_owned(), ..Tab::default() };
            super::owner(&tab).map(|target| target.authority())
        };
        assert_eq!(owner("https://a.example/x?y", "").as_deref(), Some("a.example:443"));
        assert_eq!(owner("about:blank", "https://a.example").as_deref(), Some("a.example:443"));
        assert_eq!(owner("https://a.example/", "https://b.example").as_deref(), Some("a.example:443"));
        for (url, origin) in [("about:blank", ""), ("about:blank", "://"), ("chrome-error://x/", "null"), ("", "")] {
            assert_eq!(owner(url, origin), None, "{url} {origin}");
        }
        let long = format!("https://a.example/{}", "x".repeat(9000));
        assert_eq!(owner(&long, "https://a.example"), None, "nobody's, so refused");
    }
}
