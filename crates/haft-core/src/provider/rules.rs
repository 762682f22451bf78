//! The documented rules of each provider's tool declarations, as data.
//!
//! Sources, by the title of the page:
//!
//! - Anthropic: "Define tools" (name form, `input_schema` is an object schema) and "Strict tool use" (not used by haft: a
//!   request takes 20 strict tools and 24 optional parameters at most). The API adds in its error messages: "`input_schema`
//!   does not support oneOf, allOf, or anyOf at the top level" and "Property keys should match pattern
//!   `^[a-zA-Z0-9_.-]{1,64}$`" (top level only).
//! - `OpenAI`: "Structured model outputs", section "Supported schemas" (strict mode), "Function calling" and the API
//!   reference of `tools` (name form, at most 128 functions). The API adds: "schema must have type 'object' and not have
//!   'oneOf'/'anyOf'/'allOf'/'enum'/'const'/'not' at the top level", "object schema missing properties", "array schema
//!   missing items" and, in strict mode, "Objects provided via 'anyOf' must not share identical first keys". Azure's
//!   "Function calling" limits a description to 1,024 characters.
//! - Gemini: "Function calling", the API reference of `FunctionDeclaration` and `Schema` (one type a schema, enums of
//!   strings, the listed fields), and Vertex AI's `FunctionDeclaration` (name form, names of parameters). The API adds:
//!   "items: missing field", "enum: only allowed for STRING type", `enum[0]: cannot be empty`, "format: only 'enum' and
//!   'date-time' are supported for STRING type", "required fields … are not defined in the schema properties" and "When
//!   using `any_of`, it must be the only field set".

/// The rules of a provider's declarations.
#[derive(Debug)]
pub struct ProviderRules {
    /// What a tool may be called.
    pub name: NameForm,
    /// How many characters a tool's description may have.
    pub description_max: Option<usize>,
    /// How many tools a request may have.
    pub tools_max: Option<usize>,
    /// The rules of a schema that is not strict.
    pub schema: &'static SchemaRules,
    /// The rules of a strict one, where haft asks for strict mode.
    pub strict: Option<&'static SchemaRules>,
}

/// The form of a name.
#[derive(Debug, Clone, Copy)]
pub struct NameForm {
    /// Whether the first character has to be a letter or an underscore.
    pub starts_with_letter: bool,
    /// The characters that a name may have besides ASCII letters, digits and underscores.
    pub others: &'static [char],
    /// How many characters it may have.
    pub max: usize,
}

impl NameForm {
    /// Whether a name has this form.
    pub fn fits(&self, name: &str) -> bool {
        let first = |c: char| c.is_ascii_alphabetic() || c == '_';
        let any = |c: char| c.is_ascii_alphanumeric() || c == '_' || self.others.contains(&c);
        let starts_well = !self.starts_with_letter || name.starts_with(first);
        !name.is_empty() && name.len() <= self.max && starts_well && name.chars().all(any)
    }
}

/// The rules of a schema.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "a table: each is a rule that a provider has or has not")]
pub struct SchemaRules {
    /// The keywords that it may have; none means all of JSON Schema.
    pub keywords: Option<&'static [&'static str]>,
    /// The keywords that its root must not have.
    pub not_at_root: &'static [&'static str],
    /// Whether its root has to list properties.
    pub root_lists_properties: bool,
    /// Whether every object is closed and requires all its properties.
    pub closed_objects: bool,
    /// Whether a schema has one type and no more: `type` is no list, and is there unless `anyOf` is.
    pub one_type: bool,
    /// Whether every schema has a `type`, `enum`, `const`, `anyOf` or `$ref`.
    pub typed: bool,
    /// Whether every list says what its items are.
    pub lists_have_items: bool,
    /// Whether `enum` is for strings only, none of them empty.
    pub enums_of_strings: bool,
    /// Whether `anyOf` has to stand alone.
    pub lone_any_of: bool,
    /// The formats that it may name, by type; none means all.
    pub formats: Option<&'static [(&'static str, &'static [&'static str])]>,
    /// Whether patterns must not use lookaround or backreferences.
    pub plain_patterns: bool,
    /// The form of properties' names.
    pub property_name: Option<NameForm>,
    /// Whether that form counts for nested objects too.
    pub nested_property_names: bool,
    /// How large it may be.
    pub sizes: Option<SchemaSizes>,
}

/// How large a strict schema may be.
#[derive(Debug, Clone, Copy)]
pub struct SchemaSizes {
    /// How deep objects and lists nest.
    pub depth: usize,
    /// How many properties all objects have together.
    pub properties: usize,
    /// How many characters the names of properties and definitions and the values of enums and constants have together.
    pub text: usize,
    /// How many values all enums have together.
    pub enum_values: usize,
    /// Above so many values, the strings of one enum may have so many characters together.
    pub long_enum: (usize, usize),
}

/// The keywords that change nothing about what is valid.
pub(super) const ANNOTATIONS: &[&str] = &[
    "$schema",
    "$id",
    "$comment",
    "title",
    "default",
    "examples",
    "example",
    "deprecated",
    "readOnly",
    "writeOnly",
    "discriminator",
];

const JSON_SCHEMA: SchemaRules = SchemaRules {
    keywords: None,
    not_at_root: &[],
    root_lists_properties: false,
    closed_objects: false,
    one_type: false,
    typed: false,
    lists_have_items: false,
    enums_of_strings: false,
    lone_any_of: false,
    formats: None,
    plain_patterns: false,
    property_name: None,
    nested_property_names: false,
    sizes: None,
};

/// Anthropic Messages.
pub static ANTHROPIC: ProviderRules = ProviderRules {
    name: NameForm { starts_with_letter: false, others: &['-'], max: 64 },
    description_max: None,
    tools_max: None,
    schema: &SchemaRules {
        not_at_root: &["oneOf", "anyOf", "allOf"],
        property_name: Some(NameForm { starts_with_letter: false, others: &['.', '-'], max: 64 }),
        ..JSON_SCHEMA
    },
    strict: None,
};

static OPENAI_SCHEMA: SchemaRules = SchemaRules {
    not_at_root: &["oneOf", "anyOf", "allOf", "enum", "const", "not"],
    root_lists_properties: true,
    lists_have_items: true,
    ..JSON_SCHEMA
};

static OPENAI_STRICT_SCHEMA: SchemaRules = SchemaRules {
    keywords: Some(&[
        "type",
        "description",
        "properties",
        "required",
        "additionalProperties",
        "items",
        "enum",
        "const",
        "anyOf",
        "pattern",
        "format",
        "multipleOf",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "minItems",
        "maxItems",
    ]),
    closed_objects: true,
    typed: true,
    formats: Some(&[(
        "string",
        &["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"],
    )]),
    plain_patterns: true,
    sizes: Some(SchemaSizes {
        depth: 10,
        properties: 5_000,
        text: 120_000,
        enum_values: 1_000,
        long_enum: (250, 15_000),
    }),
    ..OPENAI_SCHEMA
};

const OPENAI_NAME: NameForm = NameForm { starts_with_letter: false, others: &['-'], max: 64 };

/// `OpenAI` Responses.
pub static OPENAI_RESPONSES: ProviderRules = ProviderRules {
    name: OPENAI_NAME,
    description_max: None,
    tools_max: Some(128),
    schema: &OPENAI_SCHEMA,
    strict: Some(&OPENAI_STRICT_SCHEMA),
};

/// `OpenAI` Chat Completions, and the servers that speak it.
pub static OPENAI_CHAT: ProviderRules = ProviderRules {
    name: OPENAI_NAME,
    description_max: Some(1_024),
    tools_max: Some(128),
    schema: &OPENAI_SCHEMA,
    strict: None,
};

/// Google Gemini, and the same on Vertex AI.
pub static GEMINI: ProviderRules = ProviderRules {
    name: NameForm { starts_with_letter: true, others: &['-', '.'], max: 64 },
    description_max: None,
    tools_max: None,
    schema: &SchemaRules {
        keywords: Some(&[
            "type",
            "format",
            "description",
            "nullable",
            "enum",
            "properties",
            "required",
            "minProperties",
            "maxProperties",
            "items",
            "minItems",
            "maxItems",
            "minLength",
            "maxLength",
            "pattern",
            "minimum",
            "maximum",
            "anyOf",
        ]),
        not_at_root: &["anyOf", "enum", "nullable"],
        one_type: true,
        typed: true,
        lists_have_items: true,
        enums_of_strings: true,
        lone_any_of: true,
        formats: Some(&[
            ("string", &["enum", "date-time"]),
            ("number", &["float", "double"]),
            ("integer", &["int32", "int64"]),
        ]),
        property_name: Some(NameForm { starts_with_letter: true, others: &[], max: 64 }),
        nested_property_names: true,
        ..JSON_SCHEMA
    },
    strict: None,
};
