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
        let Ok(target) = Target::read(&address) else {
            // An empty page, or one that will be left: there is no host that could hear anything.
            let url = address.split(['/', '?', '#']).next().unwrap_or_default().to_owned();
            return Ok(Errand { method, authority: url.clone(), url, writes, refusal: None, doubts: Vec::new() });
        };
        let refusal = web.rules(&call.caller, &spec.name).admits(&target).err();
        Ok(Errand {
            method,
            url: target.to_string(),
            authority: target.authority(),
            writes,
            refusal: refusal.map(|refusal| format!("{refusal}; {}", refusal.hint())),
            doubts: if writes { doubts(&target, texts(checked.args(), "")) } else { Vec::new() },
        })
    }
}
