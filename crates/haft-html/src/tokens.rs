//! The tokenizer's two rims: where its bytes come from, and what it does not have to say.

use html5gum::emitters::callback::{CallbackEmitter, CallbackEvent};
use html5gum::{Emitter, ForwardingEmitter, Reader, Span, Tokenizer};
use std::convert::Infallible;

/// Tells of every piece of a page, in order.
pub(crate) fn each(html: &str, mut told: impl FnMut(CallbackEvent<'_>)) {
    let mut inner = CallbackEmitter::new(move |event: CallbackEvent<'_>, _: Span<()>| -> Option<Infallible> {
        told(event);
        None
    });
    inner.naively_switch_states(true);
    Tokenizer::new_with_emitter(Input { rest: html.as_bytes() }, Lenient { inner }).for_each(drop);
}

/// Does not ask what is wrong with a page. Asking is half of the work, and something always is.
struct Lenient<E> {
    inner: E,
}

impl<E: Emitter> ForwardingEmitter for Lenient<E> {
    type Token = E::Token;

    fn inner(&mut self) -> &mut impl Emitter<Token = Self::Token> {
        &mut self.inner
    }

    fn should_emit_errors(&mut self) -> bool {
        false
    }
}

/// As far is looked at once: a page of nothing but line ends is looked at so many times.
const STRETCH: usize = 256;

/// A text to be read, with long stretches found by words of memory and not byte by byte.
struct Input<'a> {
    rest: &'a [u8],
}

impl Reader for Input<'_> {
    type Error = Infallible;

    #[inline]
    fn read_byte(&mut self) -> Result<Option<u8>, Infallible> {
        let Some((first, rest)) = self.rest.split_first() else { return Ok(None) };
        self.rest = rest;
        Ok(Some(*first))
    }

    #[inline]
    fn try_read_string(&mut self, text: &[u8], case_sensitive: bool) -> Result<bool, Infallible> {
        let Some((head, rest)) = self.rest.split_at_checked(text.len()) else { return Ok(false) };
        let same = if case_sensitive { head == text } else { head.eq_ignore_ascii_case(text) };
        if same {
            self.rest = rest;
        }
        Ok(same)
    }

    #[inline]
    fn read_until<'b>(&'b mut self, needle: &[u8], _: &'b mut [u8; 4]) -> Result<Option<&'b [u8]>, Infallible> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let (read, rest) = self.rest.split_at(find(needle, self.rest).max(1));
        self.rest = rest;
        Ok(Some(read))
    }
}

/// Where the first of these bytes is, or the end.
#[inline]
fn find(needle: &[u8], text: &[u8]) -> usize {
    let text = &text[..text.len().min(STRETCH)];
    match needle {
        // The text between tags and the values of attributes, which is nearly all of a page.
        [a, b, c, d] => {
            let end = memchr::memchr3(*a, *b, *c, text).unwrap_or(text.len());
            memchr::memchr(*d, &text[..end]).unwrap_or(end)
        }
        _ => text.iter().position(|byte| needle.contains(byte)).unwrap_or(text.len()),
    }
}
