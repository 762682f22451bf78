//! The words by which text tries to give orders, in the languages that models are most often spoken to in.
//!
//! A table: senses and their words. Spaces, case, accents and punctuation are left out on both sides before anything is
//! compared, so `I-g-n-o-r-e  previous` is found as well.

/// What a phrase is a part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sense {
    /// To leave something aside. Says nothing without an [`Sense::Orders`] near it.
    Disregard,
    /// What the reader was told before.
    Orders,
    /// To keep something from the person.
    Secrecy,
    /// To be somebody else from now on.
    Role,
    /// To be without rules, or to give away one's own.
    Takeover,
    /// To run something.
    Command,
    /// To send something away. Says nothing without a [`Sense::Treasure`] near it.
    Send,
    /// What is worth stealing.
    Treasure,
    /// Speaks to a model, and not to a person.
    Address,
}

/// The table, a line for each sense and language.
const TABLE: &str = include_str!("../../phrases.txt");

/// The senses by their names in the table.
const SENSES: &[(&str, Sense)] = &[
    ("disregard", Sense::Disregard),
    ("orders", Sense::Orders),
    ("secrecy", Sense::Secrecy),
    ("role", Sense::Role),
    ("takeover", Sense::Takeover),
    ("command", Sense::Command),
    ("send", Sense::Send),
    ("treasure", Sense::Treasure),
    ("address", Sense::Address),
];

/// All phrases with their senses.
pub(super) fn phrases() -> impl Iterator<Item = (&'static str, Sense)> {
    TABLE.lines().filter_map(|line| line.split_once(": ")).flat_map(|(name, phrases)| {
        let sense = SENSES.iter().find(|(known, _)| *known == name).map(|(_, sense)| *sense);
        sense.into_iter().flat_map(move |sense| phrases.split(" | ").map(move |phrase| (phrase, sense)))
    })
}

/// Marks that belong to the machinery around a model, and not into a page.
pub(super) const MARKS: &[(&str, Mark)] = &[
    ("</untrusted", Mark::Wrapper),
    ("<|im_start|>", Mark::Delimiter),
    ("<|im_end|>", Mark::Delimiter),
    ("<|system|>", Mark::Delimiter),
    ("<|user|>", Mark::Delimiter),
    ("<|assistant|>", Mark::Delimiter),
    ("<|endoftext|>", Mark::Delimiter),
    ("<|eot_id|>", Mark::Delimiter),
    ("<|start_header_id|>", Mark::Delimiter),
    ("<start_of_turn>", Mark::Delimiter),
    ("<end_of_turn>", Mark::Delimiter),
    ("[inst]", Mark::Delimiter),
    ("[/inst]", Mark::Delimiter),
    ("<<sys>>", Mark::Delimiter),
    ("<</sys>>", Mark::Delimiter),
    ("### system:", Mark::Delimiter),
    ("### instruction:", Mark::Delimiter),
    ("### human:", Mark::Delimiter),
    ("### assistant:", Mark::Delimiter),
    ("<system>", Mark::Delimiter),
    ("</system>", Mark::Delimiter),
    ("<system-reminder>", Mark::Delimiter),
    ("</system-reminder>", Mark::Delimiter),
    ("</tool_result", Mark::Delimiter),
    ("<tool_result", Mark::Delimiter),
    ("</function_results>", Mark::Delimiter),
    ("</search_results>", Mark::Delimiter),
    ("</document>", Mark::Delimiter),
    ("</user_data>", Mark::Delimiter),
    ("[end of document]", Mark::Delimiter),
    ("[system]", Mark::Delimiter),
    ("end of untrusted", Mark::Wrapper),
    ("\nsystem:", Mark::Role),
    ("\nassistant:", Mark::Role),
    ("\nhuman:", Mark::Role),
    ("\nuser:", Mark::Role),
    ("\ntool:", Mark::Role),
    ("```tool_result", Mark::Role),
    ("```tool_output", Mark::Role),
    ("```system", Mark::Role),
    ("{\"tool\":", Mark::Call),
    ("{\"tool_name\":", Mark::Call),
    ("{\"tool_calls\":", Mark::Call),
    ("{\"function_call\":", Mark::Call),
    ("{\"function\":", Mark::Call),
    ("<function_calls>", Mark::Call),
    ("<invoke ", Mark::Call),
    ("<tool_call>", Mark::Call),
    ("<tool_use>", Mark::Call),
    ("to=functions.", Mark::Call),
    ("<|python_tag|>", Mark::Call),
];

/// What a mark pretends to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    /// The end of the wrapper around untrusted text.
    Wrapper,
    /// A border between parts of a conversation.
    Delimiter,
    /// Somebody else speaking.
    Role,
    /// A call of a tool.
    Call,
}
