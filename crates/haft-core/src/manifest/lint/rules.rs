//! The rules by their names, for whoever lists or silences them.

/// A rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// Its name.
    pub id: &'static str,
    /// What it asks for.
    pub asks: &'static str,
}

/// All rules.
pub const RULES: &[Rule] = &[
    Rule { id: "yaml", asks: "A manifest is one YAML document of bounded size." },
    Rule { id: "tabs", asks: "Spaces indent, tabs do not." },
    Rule { id: "shape", asks: "Every value has the type and bounds of the published schema." },
    Rule { id: "missing", asks: "What is required is there." },
    Rule { id: "unknown-key", asks: "There are no keys that nobody knows." },
    Rule { id: "file", asks: "A directory of tools holds directories with a readable tool.yml." },
    Rule { id: "name-directory", asks: "A tool has its directory's name." },
    Rule { id: "name-taken", asks: "No two tools have one name." },
    Rule { id: "reason", asks: "Approval that is required has a reason." },
    Rule { id: "formats", asks: "What a program prints has the form that is promised." },
    Rule { id: "description", asks: "Texts for models hide nothing and give no orders." },
    Rule { id: "template", asks: "Templates are well formed and stand where they are filled in." },
    Rule { id: "template-host", asks: "Inputs are no part of what names the host." },
    Rule { id: "url", asks: "A URL can be read and carries no credentials." },
    Rule { id: "secret-plain", asks: "Secrets do not travel unencrypted." },
    Rule { id: "secret-written", asks: "Secrets are named, not written down." },
    Rule { id: "secret-undeclared", asks: "Secrets that are used are declared." },
    Rule { id: "secret-name", asks: "A secret is no variable of haft's own or of the system's." },
    Rule { id: "secret-place", asks: "Secrets stand where nobody else can read them." },
    Rule { id: "secret-unused", asks: "Secrets that are declared are used." },
    Rule { id: "input-undeclared", asks: "Inputs that are used are declared." },
    Rule { id: "input-unused", asks: "Inputs that are declared are used." },
    Rule { id: "input-shadows-secret", asks: "An input and a secret have different names." },
    Rule { id: "permissions-wide", asks: "Permissions are no wider than what is done can use." },
    Rule { id: "permissions-narrow", asks: "Permissions are wide enough for what is done." },
    Rule { id: "permissions-path", asks: "Files are the project's." },
    Rule { id: "entrypoint", asks: "The program is there, is executable, and is the project's or the system's." },
    Rule { id: "interpreter-unpinned", asks: "It is said which interpreter runs a program." },
    Rule { id: "shell-string", asks: "No input becomes part of a program for a shell." },
    Rule { id: "option-like", asks: "An input cannot be taken for an option." },
    Rule { id: "start", asks: "A program starts in the project, or where it may read." },
    Rule { id: "module", asks: "The python module and its environment are there." },
    Rule {
        id: "step",
        asks: "Steps have names of their own, call tools and servers that exist, and use what came before.",
    },
    Rule { id: "schema", asks: "Schemas are valid JSON Schema 2020-12 of bounded effort." },
    Rule { id: "provider", asks: "Every model provider can take the tool, and is told all of its schema." },
    Rule { id: "example", asks: "Examples fit the inputs and outputs that they show." },
];
