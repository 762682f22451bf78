//! Tool declarations in the form that each model provider takes. `haft run`, `haft tools --provider` and
//! `GET /v1/tools?provider=` all declare tools here.
//!
//! A provider answers the whole request with an error if one declaration in it breaks a rule. So a declaration is
//! rewritten to the provider's form, checked against the provider's documented rules ([`rules`]), and left out if it still
//! breaks one; a note says which tool and why.
//!
//! ```text
//! input schema ──► strict form (OpenAI Responses) ──► validator ──► strict: true
//!                     │ cannot be strict
//!                     ▼
//!                  portable form, or Gemini's ──► validator ──► declaration, or left out with a note
//! ```

mod gemini;
mod merging;
mod portable;
mod references;
pub mod rules;
mod strict;
mod subschemas;
pub mod validator;

use crate::error::CallError;
use crate::tool::ToolSpec;
use rules::{ProviderRules, SchemaRules};
use serde::Serialize;
use serde_json::{Value, json};
use std::fmt;

pub use strict::strict_form;

/// A model provider's way of being told about tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Provider {
    /// Anthropic Messages.
    Anthropic,
    /// `OpenAI` Responses.
    OpenAi,
    /// `OpenAI` Chat Completions. Many servers speak it that know no strict mode, so it is not asked for.
    OpenAiChat,
    /// Google Gemini.
    Gemini,
}

/// A tool, as a model is told of it.
#[derive(Debug, Clone)]
pub struct Offered<'t> {
    /// The name that providers accept.
    pub name: &'t str,
    /// What it is.
    pub spec: &'t ToolSpec,
    /// What it takes.
    pub input: &'t Value,
}

/// One tool's declaration, and what had to be done to it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolDeclaration {
    /// The declaration; none if the provider could not take it.
    pub value: Option<Value>,
    /// What differs from the tool's own schema.
    pub notes: Vec<DeclarationNote>,
}

/// The declarations of one request.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolDeclarations {
    /// The declarations, in the order in which the tools were given.
    pub tools: Vec<Value>,
    /// What differs from the tools' own schemas.
    pub notes: Vec<DeclarationNote>,
}

/// Why a declaration differs from the tool's own schema.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeclarationNote {
    /// The tool's canonical name.
    pub tool: String,
    /// What was done.
    pub kind: NoteKind,
    /// The provider's name.
    pub provider: &'static str,
    /// Why.
    pub reason: String,
}

/// What was done to a declaration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NoteKind {
    /// It is sent with `strict: false`: the model may deviate from the schema, and haft checks the arguments.
    NotStrict,
    /// The provider is told less than the schema says; haft checks the arguments against the whole schema.
    Loosened,
    /// An optional parameter is left out.
    ParameterLeftOut,
    /// The tool is left out.
    ToolLeftOut,
}

impl NoteKind {
    /// Whether a user has to know: something cannot be used with this provider.
    pub fn is_warning(self) -> bool {
        matches!(self, Self::ParameterLeftOut | Self::ToolLeftOut)
    }
}

impl fmt::Display for DeclarationNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tool, kind, provider, reason } = self;
        match kind {
            NoteKind::NotStrict => write!(f, "`{tool}` is not strict for {provider}: {reason}"),
            NoteKind::Loosened => write!(f, "`{tool}` is declared to {provider} with a looser schema: {reason}"),
            NoteKind::ParameterLeftOut => write!(f, "a parameter of `{tool}` is not offered to {provider}: {reason}"),
            NoteKind::ToolLeftOut => write!(f, "`{tool}` is not offered to {provider}: {reason}"),
        }
    }
}

/// What a user has to know of a tool when it is registered: which providers cannot take it, and which are told less than its
/// schema says. A declaration that is only not strict says all that the schema says, and is no reason for a note here.
pub fn registration_notes(spec: &ToolSpec) -> Vec<DeclarationNote> {
    let name = spec.name.api_name();
    let notes = Provider::ALL
        .into_iter()
        .flat_map(|provider| provider.declare(&name, spec, &spec.shapes.input).notes)
        .filter(|note| note.kind != NoteKind::NotStrict);
    notes.collect()
}

/// A rewritten schema, and what was lost on the way.
struct RewrittenSchema {
    schema: Value,
    notes: Vec<(NoteKind, String)>,
}

impl Provider {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Anthropic, Self::OpenAi, Self::OpenAiChat, Self::Gemini];

    /// Reads a provider's name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|provider| provider.name() == name)
    }

    /// Reads a provider's name, or says which there are.
    pub fn named(name: &str) -> Result<Self, CallError> {
        Self::parse(name).ok_or_else(|| {
            let known: Vec<&str> = Self::ALL.into_iter().map(Self::name).collect();
            let message = format!("there is no provider `{}`", crate::preview::inert(name));
            CallError::invalid(message).hint(format!("use one of {}", known.join(", ")))
        })
    }

    /// The provider's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenAi => "openai",
            Self::OpenAiChat => "openai-chat",
            Self::Gemini => "gemini",
        }
    }

    /// The documented rules of its declarations.
    pub fn rules(self) -> &'static ProviderRules {
        match self {
            Self::Anthropic => &rules::ANTHROPIC,
            Self::OpenAi => &rules::OPENAI_RESPONSES,
            Self::OpenAiChat => &rules::OPENAI_CHAT,
            Self::Gemini => &rules::GEMINI,
        }
    }

    /// Declares these tools in one request.
    pub fn declare_all<'t>(self, tools: impl IntoIterator<Item = Offered<'t>>) -> ToolDeclarations {
        let mut all = ToolDeclarations::default();
        for tool in tools {
            if let Some(most) = self.rules().tools_max.filter(|most| all.tools.len() >= *most) {
                let reason = format!("a request takes at most {most} tools");
                all.notes.push(self.note(tool.spec, NoteKind::ToolLeftOut, reason));
                continue;
            }
            let declared = self.declare(tool.name, tool.spec, tool.input);
            all.tools.extend(declared.value);
            all.notes.extend(declared.notes);
        }
        all
    }

    /// Declares a tool under `name` with this input schema.
    pub fn declare(self, name: &str, spec: &ToolSpec, input: &Value) -> ToolDeclaration {
        let mut notes = Vec::new();
        if self == Self::OpenAi {
            match self.declare_strictly(name, spec, input) {
                Ok(value) => return ToolDeclaration { value: Some(value), notes },
                Err(reason) => notes.push(self.note(spec, NoteKind::NotStrict, reason)),
            }
        }
        let rewritten = match self {
            Self::Gemini => gemini::gemini_form(input),
            Self::Anthropic | Self::OpenAi | Self::OpenAiChat => portable::portable_form(input, self.rules().schema),
        };
        let RewrittenSchema { schema, notes: lost } = match rewritten {
            Ok(rewritten) => rewritten,
            Err(reason) => {
                notes.push(self.note(spec, NoteKind::ToolLeftOut, reason));
                return ToolDeclaration { value: None, notes };
            }
        };
        notes.extend(lost.into_iter().map(|(kind, reason)| self.note(spec, kind, reason)));
        let description = self.shortened(&spec.description);
        if description.len() < spec.description.len() {
            let reason = "its description is cut to the length that the provider takes".to_owned();
            notes.push(self.note(spec, NoteKind::Loosened, reason));
        }
        let value = self.layout(name, &description, &schema, false);
        match validator::violations(self, &value).into_iter().next() {
            None => ToolDeclaration { value: Some(value), notes },
            Some(violation) => {
                notes.push(self.note(spec, NoteKind::ToolLeftOut, violation.to_string()));
                ToolDeclaration { value: None, notes }
            }
        }
    }

    /// The strict declaration, or why there is none.
    fn declare_strictly(self, name: &str, spec: &ToolSpec, input: &Value) -> Result<Value, String> {
        if !spec.shapes.strict {
            return Err("the tool asks for it".to_owned());
        }
        let schema = strict_form(input).map_err(|obstacle| obstacle.to_string())?;
        let value = self.layout(name, &spec.description, &schema, true);
        match validator::violations(self, &value).into_iter().next() {
            None => Ok(value),
            Some(violation) => Err(violation.to_string()),
        }
    }

    /// A declaration as the provider's request has it.
    fn layout(self, name: &str, description: &str, schema: &Value, strict: bool) -> Value {
        match self {
            Self::Anthropic => json!({"name": name, "description": description, "input_schema": schema}),
            Self::OpenAi => {
                json!({"type": "function", "name": name, "description": description, "parameters": schema, "strict": strict})
            }
            Self::OpenAiChat => {
                json!({"type": "function", "function": {"name": name, "description": description, "parameters": schema}})
            }
            Self::Gemini => json!({"name": name, "description": description, "parameters": schema}),
        }
    }

    /// A description within the provider's limit, cut after a whole sentence where one ends in its second half.
    fn shortened(self, description: &str) -> String {
        let Some(most) = self.rules().description_max.filter(|most| description.chars().count() > *most) else {
            return description.to_owned();
        };
        let end = description.char_indices().nth(most - 1).map_or(description.len(), |(at, _)| at);
        let head = &description[..end];
        match head.rfind(". ").filter(|at| *at > end / 2) {
            Some(at) => head[..=at].to_owned(),
            None => format!("{head}…"),
        }
    }

    fn note(self, spec: &ToolSpec, kind: NoteKind, reason: String) -> DeclarationNote {
        DeclarationNote { tool: spec.name.to_string(), kind, provider: self.name(), reason }
    }
}

/// Whether a property of this name can be told to a provider, by the rules of its schemas.
fn takes_property(rules: &SchemaRules, name: &str) -> bool {
    rules.property_name.is_none_or(|form| form.fits(name))
}

#[cfg(test)]
mod tests;
