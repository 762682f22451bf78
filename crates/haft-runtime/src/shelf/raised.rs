//! What went wrong in an interpreter, in the words of a call.

use super::interpreter::{Broken, Head, Raised};
use super::program::said;
use crate::secrets::{Cut, Used};
use haft_core::CallError;
use haft_core::preview::{cut, inert};
use serde_json::json;
use std::path::Path;

/// How much of an exception's message is in the error's own.
const MESSAGE_COLUMNS: usize = 400;

/// Errs if the driver says that something went wrong.
pub(super) fn check(mut head: Head, used: &Used, shown: &dyn Fn(&Path) -> String) -> Result<(), CallError> {
    mask(&mut head, used);
    if let Some(wrong) = head.wrong {
        return Err(CallError::failed(inert(&wrong)).hint("`exec.python` in its manifest names them"));
    }
    if let Some(size) = head.large {
        return Err(CallError::failed(format!("it returned {} MiB, and at most 8 MiB are passed on", size >> 20))
            .hint("return less, or write it to a file that the manifest declares"));
    }
    match head.error {
        Some(raised) => Err(exception(&raised, head.during.as_deref(), head.kind.as_deref(), shown)),
        None => Ok(()),
    }
}

/// Hides secrets in what the driver says, before anything more is cut off from it.
fn mask(head: &mut Head, used: &Used) {
    head.wrong.iter_mut().chain(&mut head.kind).for_each(|text| used.mask(text));
    let Some(raised) = &mut head.error else { return };
    let is_cut = |part: &str| raised.cut.iter().any(|cut| cut == part);
    let (kind, message, trace) = (is_cut("type"), is_cut("message"), is_cut("trace"));
    used.mask_cut(&mut raised.kind, Cut::back(kind));
    used.mask_cut(&mut raised.message, Cut::back(message));
    used.mask_cut(&mut raised.trace, Cut::front(trace));
    raised.place.iter_mut().for_each(|place| used.mask(place));
}

fn exception(raised: &Raised, during: Option<&str>, value: Option<&str>, shown: &dyn Fn(&Path) -> String) -> CallError {
    let Raised { kind, message, trace, place, cut: _ } = raised;
    let place = place.as_ref().map(|place| match place.rsplit_once(':') {
        Some((file, line)) => format!(" ({}:{line})", shown(Path::new(file))),
        None => String::new(),
    });
    let said = if message.is_empty() { kind.clone() } else { format!("{kind}: {message}") };
    let said = format!("{}{}", cut(&inert(&said), MESSAGE_COLUMNS), place.unwrap_or_default());
    let (sentence, hint) = match (during, kind.as_str()) {
        (_, "MemoryError") => (said, Some("an interpreter may use 256 MB")),
        (Some("import"), _) => (format!("the module cannot be loaded: {said}"), None),
        (Some("call"), _) => (said, Some("`args` and `kwargs` in its manifest are what it is called with")),
        (Some("result"), _) => {
            let value = cut(&inert(value.unwrap_or("value")), 60);
            let hint = "return what JSON knows: no NaN, no Infinity, no objects of your own; or declare return: text";
            (format!("what it returned (a {value}) is no JSON: {said}"), Some(hint))
        }
        _ => (said, None),
    };
    let error = CallError::failed(sentence).details(json!({"type": kind, "message": message, "traceback": trace}));
    match hint {
        Some(hint) => error.hint(hint),
        None => error,
    }
}

/// What is said of an interpreter that gave no answer. What it printed is masked already.
pub(super) fn broken(broken: Broken, why: &str, printed: &[u8], used: &Used) -> CallError {
    let printed = said(printed);
    let printed = if printed.is_empty() { String::new() } else { format!("; it printed: {printed}") };
    match broken {
        Broken::Unfit(error) => error,
        Broken::Ended => CallError::failed(format!("the interpreter gave no answer: {why}{printed}"))
            .hint("it may have used more than 256 MB, ended itself, or closed what it does not own"),
        Broken::Garbage(mut what) => {
            used.mask(&mut what);
            let what = cut(&inert(&what), 200);
            CallError::failed(format!("the interpreter did not answer as agreed: {what}{printed}"))
                .hint("the function may have written to descriptors that it does not own")
        }
    }
}
