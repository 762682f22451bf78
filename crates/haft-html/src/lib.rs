//! From a web page to text that a model can read: markdown or plain lines, without what a reader would not see.
//!
//! One pass over the tokens of the standard, with a short stack of open elements and no tree. Nothing recurses, nothing
//! grows faster than its input, and no input is an error: what is broken is read as a browser would read it, near enough.
//!
//! ```
//! let page = haft_html::markdown("<title>Hi</title><p>One <b>two</b>", &haft_html::Options::default());
//! assert_eq!(page.text, "# Hi\n\nOne two\n");
//! ```

mod charset;
mod element;
mod hidden;
mod page;
mod table;
mod tokens;
mod write;
mod zones;

pub use charset::decode;
pub use url::Url;

use page::Reading;

/// What the text looks like.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Form {
    /// Markdown.
    #[default]
    Markdown,
    /// Lines without marks, addresses and escapes.
    Text,
}

/// How a page is read.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// What the text looks like.
    pub form: Form,
    /// Only what the page is about, without what stands around it.
    pub main: bool,
    /// Where the page came from, for links that say only a part.
    pub base: Option<Url>,
}

/// A page as text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Page {
    /// Its title, on one line.
    pub title: Option<String>,
    /// Its text, the title first.
    pub text: String,
    /// How many characters of it a reader of the page would not see. They are not in the text.
    pub hidden_chars: usize,
    /// Whether only what the page is about is in the text.
    pub main: bool,
}

/// Reads a page.
pub fn markdown(html: &str, options: &Options) -> Page {
    let mut reading = Reading::new(html, options);
    // Everything happens as the tokens come by.
    tokens::each(html, |event| reading.take(&event));
    reading.finish();
    let title = Some(collapsed(&reading.title)).filter(|title| !title.is_empty());
    let written = std::mem::take(&mut reading.writer.out);
    let zones = std::mem::replace(&mut reading.zones, zones::Zones::new(false));
    let main = if options.main { zones.main(&written) } else { None };
    let hidden_chars = reading.hidden_chars;
    Page {
        main: main.is_some(),
        text: joined(title.as_deref(), main.unwrap_or(written), options.form),
        title,
        hidden_chars,
    }
}

/// The title above the text.
fn joined(title: Option<&str>, mut text: String, form: Form) -> String {
    text.truncate(text.trim_end().len());
    let mark = if form == Form::Markdown { "# " } else { "" };
    let mut whole = match title {
        Some(title) if text.is_empty() => format!("{mark}{title}"),
        Some(title) => format!("{mark}{title}\n\n{}", text.trim_start_matches('\n')),
        None => text,
    };
    if !whole.is_empty() {
        whole.push('\n');
    }
    whole
}

/// Words with one space between them.
fn collapsed(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ")
}
