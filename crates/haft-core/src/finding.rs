//! Finding a tool by what it does, among thousands.
//!
//! ```text
//! ToolSpec ──► Card (texts by field) ──► Index (words by field, meanings) ──► the best names for a question
//! ```
//!
//! Words count by the field that they are in (BM25F). A word of a question also stands for words that are spelled like it,
//! that begin with it, that mean the same (`synonyms`) or, where there are word vectors, that are near to it. The best
//! of these counts, so that a word never counts twice. The meaning of the whole is added to that.

mod card;
mod index;
mod likely;
mod postings;
mod synonyms;
mod weights;

pub use card::Card;
pub use index::{Asked, Found, Index, Meaning};
pub use weights::Weights;
