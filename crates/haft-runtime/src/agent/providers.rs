//! The providers that haft knows. A configuration may add others, or say of one of these that it is elsewhere.

use super::settings::Provider;
use haft_core::agent::wire::Wire;
use std::collections::BTreeMap;

/// A provider that haft knows.
struct Known {
    name: &'static str,
    wire: Wire,
    url: &'static str,
    /// The variables that may hold its key; none if it is on this machine and needs none.
    keys: &'static [&'static str],
    /// The model to begin with if nobody says which; none if it is whichever is there.
    model: Option<&'static str>,
}

/// In the order in which they are looked at if nobody says which.
const KNOWN: &[Known] = &[
    Known {
        name: "anthropic",
        wire: Wire::Anthropic,
        url: "https://api.anthropic.com",
        keys: &["ANTHROPIC_API_KEY"],
        model: Some("claude-sonnet-5-5"),
    },
    Known {
        name: "openai",
        wire: Wire::Responses,
        url: "https://api.openai.com/v1",
        keys: &["OPENAI_API_KEY"],
        model: Some("gpt-5.6"),
    },
    Known {
        name: "gemini",
        wire: Wire::Gemini,
        url: "https://generativelanguage.googleapis.com/v1beta",
        keys: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        model: Some("gemini-3.8-flash"),
    },
    Known {
        name: "vertex",
        wire: Wire::Gemini,
        url: VERTEX,
        keys: &["VERTEX_ACCESS_TOKEN", "GOOGLE_OAUTH_ACCESS_TOKEN"],
        model: Some("gemini-3.8-flash"),
    },
    Known {
        name: "openrouter",
        wire: Wire::Chat,
        url: "https://openrouter.ai/api/v1",
        keys: &["OPENROUTER_API_KEY"],
        model: Some("anthropic/claude-sonnet-4.5"),
    },
    Known {
        name: "groq",
        wire: Wire::Chat,
        url: "https://api.groq.com/openai/v1",
        keys: &["GROQ_API_KEY"],
        model: Some("openai/gpt-oss-120b"),
    },
    Known {
        name: "mistral",
        wire: Wire::Chat,
        url: "https://api.mistral.ai/v1",
        keys: &["MISTRAL_API_KEY"],
        model: Some("mistral-large-latest"),
    },
    Known {
        name: "deepseek",
        wire: Wire::Chat,
        url: "https://api.deepseek.com/v1",
        keys: &["DEEPSEEK_API_KEY"],
        model: Some("deepseek-chat"),
    },
    Known { name: "xai", wire: Wire::Chat, url: "https://api.x.ai/v1", keys: &["XAI_API_KEY"], model: Some("grok-4") },
    local("ollama", "http://127.0.0.1:11434/v1"),
    local("lmstudio", "http://127.0.0.1:1234/v1"),
    local("llamacpp", "http://127.0.0.1:8080/v1"),
    local("vllm", "http://127.0.0.1:8000/v1"),
];

/// A project's place on Vertex. What is in braces is a variable.
const VERTEX: &str =
    "https://{HOST}/v1/projects/{GOOGLE_CLOUD_PROJECT}/locations/{GOOGLE_CLOUD_LOCATION}/publishers/google";

const fn local(name: &'static str, url: &'static str) -> Known {
    Known { name, wire: Wire::Chat, url, keys: &[], model: None }
}

/// Whether this is a server on the user's own machine.
pub fn is_local(name: &str) -> bool {
    KNOWN.iter().any(|known| known.name == name && known.keys.is_empty())
}

/// The providers that haft knows, by name. Where Vertex is depends on the project and the place that variables name.
pub fn known(variable: impl Fn(&str) -> Option<String>) -> BTreeMap<String, Provider> {
    let keys = |known: &Known| known.keys.iter().map(|name| (*name).to_owned()).collect();
    let url = |known: &Known| if known.url == VERTEX { vertex(&variable) } else { known.url.to_owned() };
    let each = KNOWN.iter().map(|known| {
        let provider = Provider { wire: known.wire, url: url(known), keys: keys(known), headers: BTreeMap::new() };
        (known.name.to_owned(), provider)
    });
    each.collect()
}

/// Names of providers, in the order in which they are looked at, with the models to begin with.
pub fn preferred() -> impl Iterator<Item = (&'static str, Option<&'static str>)> {
    KNOWN.iter().map(|known| (known.name, known.model))
}

fn vertex(variable: impl Fn(&str) -> Option<String>) -> String {
    // Only what can stand in a name of a project or of a place goes into a URL that a token is sent to.
    let plain =
        |text: &String| !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == ':');
    let said = |names: &[&str]| names.iter().find_map(|name| variable(name).filter(plain));
    let place = said(&["GOOGLE_CLOUD_LOCATION", "VERTEX_LOCATION"]).unwrap_or_else(|| "global".to_owned());
    let Some(project) = said(&["GOOGLE_CLOUD_PROJECT", "VERTEX_PROJECT"]) else { return String::new() };
    let host = match place.as_str() {
        "global" => "aiplatform.googleapis.com".to_owned(),
        place => format!("{place}-aiplatform.googleapis.com"),
    };
    format!("https://{host}/v1/projects/{project}/locations/{place}/publishers/google")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vertex_is_where_its_project_is() {
        let at = |set: &'static [(&str, &str)]| {
            let found =
                move |name: &str| set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
            known(found)["vertex"].url.clone()
        };
        assert_eq!(at(&[]), "", "nobody knows which project");
        assert_eq!(
            at(&[("GOOGLE_CLOUD_PROJECT", "p-1")]),
            "https://aiplatform.googleapis.com/v1/projects/p-1/locations/global/publishers/google"
        );
        assert_eq!(
            at(&[("GOOGLE_CLOUD_PROJECT", "p-1"), ("GOOGLE_CLOUD_LOCATION", "europe-west4")]),
            "https://europe-west4-aiplatform.googleapis.com/v1/projects/p-1/locations/europe-west4/publishers/google"
        );
        assert_eq!(at(&[("GOOGLE_CLOUD_PROJECT", "p/../../evil")]), "");
        assert!(!at(&[("GOOGLE_CLOUD_PROJECT", "p"), ("GOOGLE_CLOUD_LOCATION", "evil.example/")]).contains("evil"));
    }

    #[test]
    fn every_known_place_is_one() {
        for (name, provider) in known(|_| Some("p".to_owned())) {
            let target = haft_core::web::Target::read(&provider.url).unwrap();
            assert_eq!(target.host().is_private(), is_local(&name), "{name}");
            assert_eq!(target.is_secure(), !is_local(&name), "{name}");
            assert!(provider.keys.iter().all(|key| crate::secrets::is_name(key)), "{name}");
        }
    }
}
