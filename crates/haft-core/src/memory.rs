//! What agents know, as far as it can be decided without looking anywhere: names, notes, pieces, words, and which pieces
//! answer a question best.
//!
//! A namespace is a markdown document. It is cut into [`Piece`]s; each is known by its [`Counted`] words and, where there
//! is a model, by a vector of small numbers. An [`Index`] holds both, and ranks pieces by [`Weights`].

mod index;
mod namespace;
mod note;
mod piece;
mod postings;
mod rank;
mod snippet;
mod stem;
mod vectors;
mod words;

pub use index::{Asked, Entry, Hit, Index};
pub use namespace::{BadNamespace, Namespace, Scope};
pub use note::{Note, civil, holds, is_tag, read_stamp, stamp};
pub use piece::{Piece, pieces};
pub use rank::{Source, Weights};
pub use snippet::{Snippet, snippet};
pub(crate) use vectors::Vectors;
pub use vectors::narrowed;
pub(crate) use words::spelled;
pub use words::{Counted, WORDS_VERSION, hash, words};

/// The largest document, in bytes.
pub const DOCUMENT_MAX: usize = 8 << 20;
/// The largest note, in bytes.
pub const NOTE_MAX: usize = 64 << 10;
/// The longest question, in bytes; what is longer is refused.
pub const QUERY_MAX: usize = 8 << 10;
