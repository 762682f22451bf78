//! A tool manifest per operation of a document.

use super::outline::variable;
use super::schema::Resolver;
use super::{Document, Operation, ident};
use haft_core::manifest::reach;
use haft_core::web::Target;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// How many values the schema of one operation may have.
const ROOM: usize = 2000;
/// The longest name of a tool.
const NAME_MAX: usize = 60;
const DESCRIPTION_MAX: usize = 500;
/// What manifests can send.
const METHODS: &[&str] = &["GET", "POST", "PUT", "DELETE", "PATCH"];

/// A manifest.
pub(crate) struct Made {
    /// The tool's name, which is its directory's, too.
    pub(crate) name: String,
    /// The operation's own name.
    pub(crate) operation: String,
    /// What stands in `tool.yml`.
    pub(crate) manifest: Value,
    /// What is to be known about it.
    pub(crate) warnings: Vec<String>,
}

/// The manifests of an API, and why some operations have none.
pub(crate) fn manifests(document: &Document, id: &str, base: &Target) -> (Vec<Made>, Vec<String>) {
    let (mut all, mut warnings, mut taken) = (Vec::new(), Vec::new(), BTreeSet::new());
    for operation in document.operations() {
        let name = name(id, &operation, &mut taken);
        match Draft::of(document, id, &operation) {
            Ok(draft) => {
                let cut = "its schema refers to itself or is very large, and is not said in full";
                let cut = draft.cut.then(|| cut.to_owned());
                let left = draft.left.iter().map(|cookie| format!("the cookie `{cookie}` is not sent"));
                let warnings = cut.into_iter().chain(left).map(|said| format!("{name}: {said}")).collect();
                let spoken = operation.text("operationId").to_owned();
                all.push(Made { manifest: draft.manifest(&name, base, &operation), operation: spoken, name, warnings });
            }
            Err(why) => warnings.push(format!("{} {} has no tool: {why}", operation.method, operation.path)),
        }
    }
    (all, warnings)
}

/// A name that no other has.
fn name(id: &str, operation: &Operation<'_>, taken: &mut BTreeSet<String>) -> String {
    let spoken = operation.text("operationId");
    let own = if spoken.is_empty() {
        format!("{} {}", operation.method.to_lowercase(), operation.path)
    } else {
        spoken.to_owned()
    };
    let whole = format!("{}_{}", ident(id), ident(&own));
    let whole = if whole.starts_with(|c: char| c.is_ascii_digit()) { format!("api_{whole}") } else { whole };
    let short: String = whole.chars().take(NAME_MAX).collect::<String>().trim_end_matches('_').to_owned();
    let mut name = short.clone();
    let mut number = 2;
    while !taken.insert(name.clone()) {
        name = format!("{short}_{number}");
        number += 1;
    }
    name
}

/// What a manifest is made of.
#[derive(Default)]
struct Draft {
    properties: Map<String, Value>,
    required: Vec<String>,
    path: String,
    query: Map<String, Value>,
    headers: Map<String, Value>,
    body: Option<Value>,
    secrets: Vec<String>,
    cut: bool,
    /// The cookies that it could have.
    left: Vec<String>,
}

impl Draft {
    fn of(document: &Document, id: &str, operation: &Operation<'_>) -> Result<Self, String> {
        if !METHODS.contains(&operation.method.as_str()) {
            return Err("manifests send GET, POST, PUT, DELETE and PATCH".to_owned());
        }
        let mut draft = Self { path: operation.path.to_owned(), ..Self::default() };
        let mut resolver = Resolver::new(document, ROOM);
        draft.sign(document, id, operation)?;
        for parameter in parameters(document, operation) {
            draft.parameter(document, parameter, &mut resolver)?;
        }
        if draft.path.replace("${", "").contains('{') {
            return Err("its path has a part that is not declared".to_owned());
        }
        draft.take_body(document, operation, &mut resolver)?;
        draft.cut = resolver.cut;
        Ok(draft)
    }

    /// Signs in, by secrets that are read from the environment.
    fn sign(&mut self, document: &Document, id: &str, operation: &Operation<'_>) -> Result<(), String> {
        let Some(scheme) = document.scheme(Some(operation.said)) else { return Ok(()) };
        let text = |name: &str| scheme[name].as_str().unwrap_or_default();
        let (what, place) = match (text("type"), text("scheme").to_ascii_lowercase().as_str(), text("in")) {
            ("http", "basic", _) => ("BASIC", ("Authorization", "Basic ")),
            ("http", "bearer", _) | ("oauth2" | "openIdConnect", ..) => ("TOKEN", ("Authorization", "Bearer ")),
            ("apiKey", _, "header" | "query") => ("KEY", (text("name"), "")),
            _ => return Err("how to sign in cannot be said in a manifest".to_owned()),
        };
        let secret = variable(id, what);
        let (name, before) = place;
        let value = Value::from(format!("{before}${{{secret}}}"));
        if text("in") == "query" {
            self.query.insert(name.to_owned(), value);
        } else {
            self.headers.insert(name.to_owned(), value);
        }
        self.secrets.push(secret);
        Ok(())
    }

    /// Takes a parameter in: as an input, and where it goes.
    fn parameter(&mut self, document: &Document, parameter: &Value, resolver: &mut Resolver<'_>) -> Result<(), String> {
        let (Some(spoken), Some(place)) = (parameter["name"].as_str(), parameter["in"].as_str()) else {
            return Err("a parameter has no name or place".to_owned());
        };
        // What haft and the manifest say by themselves.
        let own =
            |name: &str| ["authorization", "accept", "content-type"].iter().any(|own| name.eq_ignore_ascii_case(own));
        if place == "header" && (own(spoken) || self.headers.keys().any(|known| known.eq_ignore_ascii_case(spoken))) {
            return Ok(());
        }
        if place == "query" && self.query.contains_key(spoken) {
            return Ok(());
        }
        let required = parameter["required"] == true || place == "path";
        if place == "cookie" {
            if required {
                return Err("it needs a cookie".to_owned());
            }
            self.left.push(haft_core::preview::inert(spoken));
            return Ok(());
        }
        let content = || {
            parameter["content"].as_object().and_then(|content| content.values().next()).map(|media| &media["schema"])
        };
        let schema = parameter.get("schema").or_else(content).unwrap_or(&Value::Null);
        let input =
            self.input(document, (spoken, place), schema, parameter["description"].as_str(), required, resolver);
        let filled = Value::from(format!("${{{input}}}"));
        match place {
            "path" => {
                let hole = format!("{{{spoken}}}");
                if !self.path.contains(&hole) {
                    return Err(format!("`{spoken}` is not in its path"));
                }
                self.path = self.path.replace(&hole, &format!("${{{input}}}"));
            }
            "query" => {
                self.query.insert(spoken.to_owned(), filled);
            }
            _ => {
                self.headers.insert(spoken.to_owned(), filled);
            }
        }
        Ok(())
    }

    /// Declares an input, under a name that no other has. Returns the name.
    fn input(
        &mut self,
        document: &Document,
        (spoken, place): (&str, &str),
        schema: &Value,
        about: Option<&str>,
        required: bool,
        resolver: &mut Resolver<'_>,
    ) -> String {
        let mut schema = resolver.schema(schema, 0);
        let own = document.resolve(&schema)["description"].is_string();
        if let (Some(about), Some(object), false) = (about, schema.as_object_mut(), own) {
            let about = about.split_whitespace().collect::<Vec<_>>().join(" ");
            object.insert("description".to_owned(), haft_core::preview::cut(&about, DESCRIPTION_MAX).into());
        }
        let plain = ident(spoken);
        let mut name = if plain.is_empty() { place.to_owned() } else { plain };
        while self.properties.contains_key(&name) {
            name = format!("{name}_{place}");
        }
        self.properties.insert(name.clone(), schema);
        if required {
            self.required.push(name.clone());
        }
        name
    }

    /// Takes a body in: its properties as inputs where they are plain, else as one input.
    fn take_body(
        &mut self,
        document: &Document,
        operation: &Operation<'_>,
        resolver: &mut Resolver<'_>,
    ) -> Result<(), String> {
        let Some(body) = operation.said.get("requestBody").map(|body| document.resolve(body)) else { return Ok(()) };
        let Some(content) = body["content"].as_object().filter(|content| !content.is_empty()) else { return Ok(()) };
        let is_json = |kind: &str| {
            let kind = kind.split(';').next().unwrap_or_default().trim();
            kind == "application/json" || kind.ends_with("+json") || kind == "*/*"
        };
        let Some((_, media)) = content.iter().find(|(kind, _)| is_json(kind)) else {
            let kinds: Vec<&str> = content.keys().map(String::as_str).take(3).collect();
            return Err(format!("it takes {}, and manifests send JSON", kinds.join(", ")));
        };
        self.headers.insert("Content-Type".to_owned(), "application/json".into());
        let schema = document.resolve(&media["schema"]);
        if let Some(fields) = self.plain_fields(document, schema) {
            let required =
                |name: &str| schema["required"].as_array().is_some_and(|list| list.iter().any(|item| item == name));
            let mut sent = Map::new();
            for (spoken, field) in fields {
                let input = self.input(document, (spoken, "body"), field, None, required(spoken), resolver);
                sent.insert(spoken.clone(), format!("${{{input}}}").into());
            }
            self.body = Some(sent.into());
            return Ok(());
        }
        let about = body["description"].as_str();
        let input = self.input(document, ("body", "body"), &media["schema"], about, body["required"] == true, resolver);
        self.body = Some(format!("${{{input}}}").into());
        Ok(())
    }

    /// The fields of a body that is nothing but its fields, none of which is called like another input.
    fn plain_fields<'d>(&self, document: &'d Document, schema: &'d Value) -> Option<Vec<(&'d String, &'d Value)>> {
        let odd =
            ["allOf", "anyOf", "oneOf", "not", "patternProperties", "if"].iter().any(|key| schema.get(key).is_some());
        let open = schema.get("additionalProperties").is_some_and(|more| *more != Value::Bool(false));
        let fields: Vec<_> = schema["properties"].as_object()?.iter().collect();
        let fields: Vec<_> =
            fields.into_iter().filter(|(_, field)| document.resolve(field)["readOnly"] != true).collect();
        let names: BTreeSet<String> = fields.iter().map(|(name, _)| ident(name)).collect();
        let distinct = names.len() == fields.len()
            && !names.contains("")
            && !names.iter().any(|name| self.properties.contains_key(name));
        (!odd && !open && distinct && !fields.is_empty()).then_some(fields)
    }

    fn manifest(self, name: &str, base: &Target, operation: &Operation<'_>) -> Value {
        let url = format!("{}{}", base.to_string().trim_end_matches('/'), self.path);
        let mut http = json!({"method": operation.method, "url": url});
        for (key, part) in [("headers", self.headers), ("query", self.query)] {
            if !part.is_empty() {
                http[key] = part.into();
            }
        }
        if let Some(body) = self.body {
            http["body"] = body;
        }
        let secrets: Map<String, Value> =
            self.secrets.iter().map(|name| (name.clone(), json!({"type": "string", "required": true}))).collect();
        let approval = match operation.method.as_str() {
            "GET" => json!({"required": false}),
            method => json!({"required": true, "reason": format!("Sends a {method} request to {}", base.authority())}),
        };
        // One host, in the form that lets a request through also where it is a service of one's own.
        let network = reach::own(base.url()).map_or(json!(true), |own| json!([own.rule]));
        let mut schema = json!({"type": "object", "additionalProperties": false, "properties": self.properties});
        if !self.required.is_empty() {
            schema["required"] = self.required.into();
        }
        json!({
            "name": name, "description": operation.line(DESCRIPTION_MAX), "kind": "http", "version": 1,
            "inputs": {"schema": schema}, "outputs": {"format": format(operation)}, "exec": {"http": http},
            "permissions": {"network": network, "fs": {"read": [], "write": []}, "secrets": secrets},
            "approval": approval
        })
    }
}

/// The parameters of an operation: its own, and those of its path that it does not say anew.
fn parameters<'d>(document: &'d Document, operation: &Operation<'d>) -> Vec<&'d Value> {
    let list = |value: &'d Value| value["parameters"].as_array().into_iter().flatten().map(|one| document.resolve(one));
    let mut all: Vec<&Value> = list(operation.said).collect();
    for shared in list(operation.item) {
        let same = |own: &&Value| (&own["name"], &own["in"]) == (&shared["name"], &shared["in"]);
        if !all.iter().any(same) {
            all.push(shared);
        }
    }
    all
}

/// Whether the answer is JSON.
fn format(operation: &Operation<'_>) -> &'static str {
    let responses = operation.said["responses"].as_object().into_iter().flatten();
    let good = responses.filter(|(status, _)| status.starts_with('2') || status.as_str() == "default");
    let mut kinds =
        good.flat_map(|(_, response)| response["content"].as_object().into_iter().flat_map(Map::keys)).peekable();
    if kinds.peek().is_none() || kinds.any(|kind| kind.contains("json")) { "json" } else { "text" }
}
