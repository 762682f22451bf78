//! OpenAPI 3 documents: what they say of an API, as a profile and as tool manifests.
//!
//! A document comes from anywhere. References are followed only within it, cycles are cut, and what is made of it is
//! bounded, however much it repeats itself.

mod manifest;
mod outline;
mod schema;

pub(crate) use manifest::{Made, manifests};
pub(crate) use outline::profile;

use haft_core::CallError;
use haft_core::preview::{cut, inert};
use serde_json::{Map, Value};
use serde_saphyr::{Budget, Options};

/// The largest document that is read.
pub(crate) const BYTES_MAX: usize = 16 << 20;
/// How often a YAML document may repeat a part of itself.
const ALIASES_MAX: usize = 256;
/// How many references are followed in a row.
const CHAIN_MAX: usize = 16;
/// So many operations are looked at.
const OPERATIONS_MAX: usize = 5000;

/// A document.
pub(crate) struct Document {
    root: Value,
}

/// One thing that can be asked of an API.
pub(crate) struct Operation<'d> {
    pub(crate) method: String,
    pub(crate) path: &'d str,
    /// What holds for everything at this path.
    item: &'d Value,
    said: &'d Value,
}

impl Document {
    /// Reads one, in JSON or YAML.
    pub(crate) fn read(text: &str) -> Result<Self, CallError> {
        let unreadable =
            |why: String| CallError::invalid(format!("this is not an OpenAPI document: {}", cut(&inert(&why), 300)));
        if text.len() > BYTES_MAX {
            return Err(unreadable(format!("it is larger than {} MiB", BYTES_MAX >> 20)));
        }
        let root: Value = if text.trim_start().starts_with('{') {
            serde_json::from_str(text).map_err(|error| unreadable(error.to_string()))?
        } else {
            serde_saphyr::from_str_with_options(text, bounded()).map_err(|error| unreadable(error.to_string()))?
        };
        match (root["openapi"].as_str(), root.get("swagger")) {
            (Some(version), _) if version.starts_with("3.") => Ok(Self { root }),
            (Some(version), _) => {
                Err(unreadable(format!("its version is {version}")).hint("OpenAPI 3.0 and 3.1 are read"))
            }
            (None, Some(_)) => Err(unreadable("it is of version 2 (Swagger)".to_owned())
                .hint("convert it to OpenAPI 3 first; most tools that write one version write the other")),
            (None, None) => Err(match root.get("openapi") {
                // YAML reads 2.0 as a number.
                Some(other) => unreadable(format!("its version is {other}, which is no text"))
                    .hint("OpenAPI 3.0 and 3.1 are read; write the version as in `openapi: \"3.0.3\"`"),
                None => unreadable("the key `openapi` is missing".to_owned()),
            }),
        }
    }

    /// What a value says, or what it refers to says.
    fn resolve<'d>(&'d self, value: &'d Value) -> &'d Value {
        let mut here = value;
        for _ in 0..CHAIN_MAX {
            match here.get("$ref").and_then(Value::as_str) {
                None => return here,
                Some(reference) => here = self.at(reference).unwrap_or(&Value::Null),
            }
        }
        &Value::Null
    }

    /// What a reference within the document leads to.
    fn at(&self, reference: &str) -> Option<&Value> {
        let pointer = reference.strip_prefix('#')?;
        self.root.pointer(pointer).or_else(|| self.root.pointer(&percent_decoded(pointer)))
    }

    /// All operations, in the document's order.
    pub(crate) fn operations(&self) -> Vec<Operation<'_>> {
        const METHODS: &[&str] = &["get", "post", "put", "delete", "patch", "head", "options"];
        let paths = self.root["paths"].as_object().into_iter().flatten();
        let found = paths.filter(|(path, _)| path.starts_with('/')).flat_map(|(path, item)| {
            let item = self.resolve(item);
            METHODS.iter().filter_map(move |method| {
                let said = item.get(method).filter(|said| said.is_object())?;
                Some(Operation { method: method.to_uppercase(), path, item, said })
            })
        });
        found.take(OPERATIONS_MAX).collect()
    }

    /// Where the API is: the first server, with the usual values of its variables.
    pub(crate) fn server(&self) -> Option<String> {
        let server = self.root["servers"].as_array()?.first()?;
        let mut url = server["url"].as_str()?.to_owned();
        for (name, variable) in server["variables"].as_object().into_iter().flatten() {
            url = url.replace(&format!("{{{name}}}"), variable["default"].as_str().unwrap_or_default());
        }
        Some(url).filter(|url| url.starts_with("http://") || url.starts_with("https://"))
    }

    fn info(&self, name: &str) -> &str {
        self.root["info"][name].as_str().unwrap_or_default().trim()
    }

    /// The scheme by which something is signed in to: what the operation says, else what the document says.
    fn scheme(&self, said: Option<&Value>) -> Option<&Value> {
        let schemes = self.root["components"]["securitySchemes"].as_object();
        let wanted = said.and_then(|said| said.get("security")).or_else(|| self.root.get("security"));
        let name = match wanted.and_then(Value::as_array) {
            // An empty requirement means that it may be asked without; then it is.
            Some(list) if list.iter().any(|one| one.as_object().is_some_and(Map::is_empty)) => return None,
            Some(list) => list.first()?.as_object()?.keys().next()?,
            None if said.is_some() => return None,
            None => schemes?.keys().next()?,
        };
        schemes?.get(name).map(|scheme| self.resolve(scheme)).filter(|scheme| scheme.is_object())
    }
}

impl Operation<'_> {
    fn text(&self, name: &str) -> &str {
        self.said[name].as_str().or_else(|| self.item[name].as_str()).unwrap_or_default().trim()
    }

    /// One line about it.
    fn line(&self, columns: usize) -> String {
        let said = [self.text("summary"), self.text("description"), self.text("operationId")];
        let said = said.into_iter().find(|said| !said.is_empty()).map(str::to_owned);
        let said = said.unwrap_or_else(|| format!("{} {}", self.method, self.path));
        cut(&said.split_whitespace().collect::<Vec<_>>().join(" "), columns)
    }
}

fn bounded() -> Options {
    let mut budget = Budget::default();
    budget.max_aliases = ALIASES_MAX;
    let mut options = Options::default();
    options.budget = Some(budget);
    options.with_snippet = false;
    options
}

/// A pointer as it was before somebody put it into a URL.
fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let hex = tail.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        let byte = hex.filter(|_| *first == b'%').and_then(|hex| u8::from_str_radix(hex, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &tail[2..] } else { tail };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A name for a variable, an input or a tool: letters, digits and `_`.
pub(crate) fn ident(text: &str) -> String {
    let mut name = String::new();
    let mut small = false;
    for c in text.chars() {
        if c.is_ascii_uppercase() && small {
            name.push('_');
        }
        small = c.is_ascii_lowercase() || c.is_ascii_digit();
        match c.is_ascii_alphanumeric() {
            true => name.push(c.to_ascii_lowercase()),
            false if !name.ends_with('_') && !name.is_empty() => name.push('_'),
            false => {}
        }
    }
    name.trim_end_matches('_').to_owned()
}

#[cfg(test)]
mod tests;
