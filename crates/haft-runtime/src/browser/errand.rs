//! What a call would do to the page that its session's browser shows, for those who decide about it.

use super::Browsers;
use super::pool::no_page;
use crate::web::{Web, texts};
use haft_core::tool::Effect;
use haft_core::web::{Errand, Target, doubts};
use haft_core::{CallError, Checked};

impl Browsers {
    /// The errand of a call about the page that is shown. Acting on a page counts as writing to its host.
    pub(crate) fn errand(&self, web: &Web, checked: &Checked) -> Result<Errand, CallError> {
        let (spec, call) = (checked.spec(), checked.call());
        let browser = self.peek(&call.session).filter(|browser| browser.wire.is_open()).ok_or_else(no_page)?;
        let address = browser.address();
        let method = spec.name.as_str().rsplit('.').next().unwrap_or_default().to_ascii_uppercase();
        let writes = spec.effects.effect == Effect::Acts;
        let authority = authority_of(&address);
        let Ok(target) = Target::read(&address) else {
            // An empty page, or one that will be left, has no host that could hear anything; one of the web has.
            let odd = address.starts_with("http").then(|| "the page's address cannot be read".to_owned());
            let refusal = odd.filter(|_| writes);
            return Ok(Errand { method, url: authority.clone(), authority, writes, refusal, doubts: Vec::new() });
        };
        let refusal = web.rules(&call.caller, &spec.name).admits(&target).err();
        Ok(Errand {
            method,
            url: target.to_string(),
            authority,
            writes,
            refusal: refusal.map(|refusal| format!("{refusal}; {}", refusal.hint())),
            doubts: if writes { doubts(&target, texts(checked.args(), "")) } else { Vec::new() },
        })
    }
}

/// Whom a page belongs to: the host and port, or what stands for them where there is none.
pub(super) fn authority_of(address: &str) -> String {
    let scheme = || address.split(['/', '?', '#']).next().unwrap_or_default().to_owned();
    Target::read(address).map_or_else(|_| scheme(), |target| target.authority())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_belongs_to_its_host_or_to_nobody() {
        assert_eq!(authority_of("https://a.example/x?y"), "a.example:443");
        assert_eq!(authority_of("about:blank"), "about:blank");
        assert_eq!(authority_of(&format!("https://a.example/{}", "x".repeat(9000))), "https:", "nobody's, so refused");
    }
}
