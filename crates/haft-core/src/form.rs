//! Forms as people fill them in: a flat JSON Schema becomes fields, and what somebody types becomes values. Nothing
//! here is shown as it is: whoever draws a field makes its words inert.
//!
//! The kinds are those of MCP's elicitation: a choice, several choices, yes or no, a number, a text.

use serde_json::{Map, Value, json};

/// One thing that is asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// Its name in the answer.
    pub name: String,
    /// What is asked.
    pub title: String,
    /// More about it.
    pub description: Option<String>,
    /// What answers it.
    pub kind: Kind,
    /// What counts if nothing is said.
    pub default: Option<Value>,
    /// Whether it has to be answered.
    pub required: bool,
}

/// What answers a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// One of these.
    Choice(Vec<Choice>),
    /// Some of these.
    Several(Vec<Choice>),
    /// Yes or no.
    Confirm,
    /// A number; a whole one, if so.
    Number {
        /// Whether it has to be whole.
        whole: bool,
    },
    /// Any text.
    Text,
}

/// Something that can be chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// What is answered.
    pub value: String,
    /// What is shown.
    pub title: String,
}

/// The fields of a form, in the order in which the schema names them. None if it asks for something that cannot be
/// filled in field by field.
pub fn fields(schema: &Value) -> Option<Vec<Field>> {
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let field = |(name, part): (&String, &Value)| {
        let text = |key: &str| part[key].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        Some(Field {
            name: name.clone(),
            title: text("title").unwrap_or_else(|| name.clone()),
            description: text("description"),
            kind: kind(part)?,
            default: part.get("default").cloned(),
            required: required.contains(&name.as_str()),
        })
    };
    schema["properties"].as_object()?.iter().map(field).collect()
}

fn kind(part: &Value) -> Option<Kind> {
    if let Some(choices) = choices(part) {
        return Some(Kind::Choice(choices));
    }
    match part["type"].as_str()? {
        "boolean" => Some(Kind::Confirm),
        "integer" => Some(Kind::Number { whole: true }),
        "number" => Some(Kind::Number { whole: false }),
        "string" => Some(Kind::Text),
        "array" => choices(&part["items"]).map(Kind::Several),
        _ => None,
    }
}

/// What can be chosen: `enum`, with titles in `enumNames`, or `oneOf` with constants and titles.
fn choices(part: &Value) -> Option<Vec<Choice>> {
    if let Some(values) = part["enum"].as_array() {
        let title = |at: usize| part["enumNames"][at].as_str();
        let choice = |(at, value): (usize, &Value)| {
            let value = value.as_str()?;
            Some(Choice { value: value.to_owned(), title: title(at).unwrap_or(value).to_owned() })
        };
        return values.iter().enumerate().map(choice).collect();
    }
    let listed = part["oneOf"].as_array().or_else(|| part["anyOf"].as_array())?;
    let choice = |one: &Value| {
        let value = one["const"].as_str()?;
        Some(Choice { value: value.to_owned(), title: one["title"].as_str().unwrap_or(value).to_owned() })
    };
    listed.iter().map(choice).collect()
}

impl Field {
    /// What somebody typed, as a value; none if they left it empty and may. Choices go by number, by value or by title.
    pub fn read(&self, typed: &str) -> Result<Option<Value>, String> {
        let typed = typed.trim();
        if typed.is_empty() {
            return match (&self.default, self.required) {
                (Some(default), _) => Ok(Some(default.clone())),
                (None, false) => Ok(None),
                (None, true) => Err("this has to be answered".to_owned()),
            };
        }
        match &self.kind {
            Kind::Choice(choices) => choose(choices, typed).map(|value| Some(json!(value))),
            Kind::Several(choices) => several(choices, typed).map(|values| Some(json!(values))),
            Kind::Confirm => match typed.to_lowercase().as_str() {
                "y" | "yes" | "true" => Ok(Some(json!(true))),
                "n" | "no" | "false" => Ok(Some(json!(false))),
                _ => Err("answer y or n".to_owned()),
            },
            Kind::Number { whole: true } => {
                typed.parse::<i64>().map(|number| Some(json!(number))).map_err(|_| "answer a whole number".to_owned())
            }
            Kind::Number { whole: false } => {
                let number = typed.parse::<f64>().ok().filter(|number| number.is_finite());
                number.map(|number| Some(json!(number))).ok_or_else(|| "answer a number".to_owned())
            }
            Kind::Text => Ok(Some(json!(typed))),
        }
    }

    /// The default as people write it.
    pub fn usual(&self) -> Option<String> {
        match (self.default.as_ref()?, &self.kind) {
            (Value::Bool(yes), Kind::Confirm) => Some(if *yes { "y" } else { "n" }.to_owned()),
            (Value::Array(values), _) => Some(values.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", ")),
            (Value::String(text), _) => Some(text.clone()),
            (other, _) => Some(other.to_string()),
        }
    }
}

/// The answer to a whole form, from `name=value` as somebody typed it. Fields without a value count as left empty.
pub fn filled(fields: &[Field], given: &[(String, String)]) -> Result<Value, String> {
    if let Some((name, _)) = given.iter().find(|(name, _)| !fields.iter().any(|field| field.name == *name)) {
        let names: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
        return Err(format!("there is no field `{name}`; there are {}", names.join(", ")));
    }
    let mut answer = Map::new();
    for field in fields {
        let typed = given.iter().find(|(name, _)| *name == field.name).map_or("", |(_, typed)| typed);
        if let Some(value) = field.read(typed).map_err(|why| format!("`{}`: {why}", field.name))? {
            answer.insert(field.name.clone(), value);
        }
    }
    Ok(Value::Object(answer))
}

fn choose(choices: &[Choice], typed: &str) -> Result<String, String> {
    let typed = typed.trim();
    let same = |text: &str| text.eq_ignore_ascii_case(typed);
    // An option that is a number itself is meant before the number of another.
    if let Some(choice) = choices.iter().find(|choice| same(&choice.value) || same(&choice.title)) {
        return Ok(choice.value.clone());
    }
    let by_number = typed.parse::<usize>().ok().and_then(|number| choices.get(number.checked_sub(1)?));
    by_number
        .map(|choice| choice.value.clone())
        .ok_or_else(|| format!("choose a number from 1 to {}, or an option by its words", choices.len()))
}

fn several(choices: &[Choice], typed: &str) -> Result<Vec<String>, String> {
    // An option may have commas in it.
    if let Ok(whole) = choose(choices, typed) {
        return Ok(vec![whole]);
    }
    let mut chosen: Vec<String> = Vec::new();
    for word in typed.split(',').filter(|word| !word.trim().is_empty()) {
        let value = choose(choices, word)?;
        if !chosen.contains(&value) {
            chosen.push(value);
        }
    }
    Ok(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema() -> Value {
        json!({"type": "object", "properties": {
            "db": {"type": "string", "title": "Which?", "enum": ["sqlite", "postgres"]},
            "parts": {"type": "array", "items": {"type": "string", "enum": ["api", "page, and text", "docs"]}},
            "sure": {"type": "boolean", "default": false},
            "port": {"type": "integer"},
            "share": {"type": "number"},
            "why": {"type": "string"},
            "era": {"oneOf": [{"const": "a", "title": "The first"}, {"const": "b"}]}
        }, "required": ["db", "why"]})
    }

    fn field(name: &str) -> Field {
        fields(&schema()).unwrap().into_iter().find(|field| field.name == name).unwrap()
    }

    #[test]
    fn what_is_typed_becomes_a_value_of_its_kind_or_is_asked_again() {
        let read = |name: &str, typed: &str| field(name).read(typed);
        for typed in ["2", "postgres", " POSTGRES "] {
            assert_eq!(read("db", typed), Ok(Some(json!("postgres"))));
        }
        assert!(read("db", "3").unwrap_err().contains("1 to 2"));
        assert!(read("db", "0").is_err() && read("db", "oracle").is_err());
        assert_eq!(read("parts", "1, 3,1"), Ok(Some(json!(["api", "docs"]))));
        assert_eq!(read("parts", "page, and text"), Ok(Some(json!(["page, and text"]))));
        assert!(read("parts", "api, nothing").is_err());
        assert_eq!(read("sure", "Y"), Ok(Some(json!(true))));
        assert!(read("sure", "perhaps").is_err());
        assert_eq!(read("port", "80"), Ok(Some(json!(80))));
        assert!(read("port", "8.5").is_err() && read("share", "NaN").is_err());
        assert_eq!(read("share", "0.5"), Ok(Some(json!(0.5))));
        assert_eq!(read("era", "the first"), Ok(Some(json!("a"))));
    }

    #[test]
    fn what_is_left_empty_is_the_default_or_nothing_or_asked_again() {
        assert_eq!(field("sure").read(""), Ok(Some(json!(false))));
        assert_eq!(field("port").read("  "), Ok(None));
        assert!(field("why").read("").is_err());
        assert_eq!((field("sure").usual().as_deref(), field("why").usual()), (Some("n"), None));
    }

    #[test]
    fn a_whole_form_is_filled_in_by_names() {
        let (fields, pair) =
            (fields(&schema()).unwrap(), |name: &str, value: &str| (name.to_owned(), value.to_owned()));
        let answer = filled(&fields, &[pair("db", "1"), pair("why", "speed")]).unwrap();
        assert_eq!(answer, json!({"db": "sqlite", "why": "speed", "sure": false}));
        assert!(filled(&fields, &[pair("db", "1")]).unwrap_err().starts_with("`why`"));
        assert!(filled(&fields, &[pair("dbs", "1")]).unwrap_err().contains("there is no field `dbs`"));
    }

    #[test]
    fn what_cannot_be_filled_in_field_by_field_is_no_form() {
        let nested = json!({"properties": {"a": {"type": "object"}}});
        assert_eq!(super::fields(&nested), None);
        assert_eq!(super::fields(&json!({"type": "object"})), None);
    }
}
