//! Which model is asked.

use super::*;
use haft_core::ErrorKind;
use haft_runtime::agent::model::{Facts, Price};
use haft_stub::Reply;

fn name(text: &str) -> ModelRef {
    ModelRef::parse(text).unwrap()
}

/// Settings in which nobody that haft knows is there, but these.
fn only(providers: Vec<(&str, Provider)>) -> AgentSettings {
    let gone = |name: &str| {
        let url = "http://127.0.0.1:9/v1".to_owned();
        let keys =
            if haft_runtime::agent::providers::is_local(name) { vec![] } else { vec!["NOBODY_HAS_THIS".to_owned()] };
        (name.to_owned(), Provider { wire: Wire::Chat, url, keys, headers: BTreeMap::new() })
    };
    let mut all: BTreeMap<String, Provider> =
        haft_runtime::agent::providers::preferred().map(|(name, _)| gone(name)).collect();
    all.extend(providers.into_iter().map(|(name, provider)| (name.to_owned(), provider)));
    AgentSettings { providers: all, ..AgentSettings::default() }
}

fn with(settings: AgentSettings) -> Models {
    Models::new(Arc::new(settings), secrets(), Carrier::Own)
}

#[tokio::test]
async fn the_first_provider_with_a_key_is_asked_if_nobody_says_which() {
    let stub = Stub::with(|_| Reply::say("Yes."));
    let models = with(only(vec![("openai", provider(Wire::Responses, stub.base(haft_stub::Wire::Responses)))]));
    assert_eq!(models.chosen().await.unwrap(), [name("openai/gpt-5.6")]);
    let chain = models.chain(&[]).await.unwrap();
    assert_eq!(ask(&chain[0]).await.message.text(), "Yes.");
}

#[tokio::test]
async fn a_server_on_this_machine_is_found_if_there_is_no_key() {
    let stub = Stub::with(|_| Reply::say("Here.")).listing(&["nomic-embed-text", "qwen3:8b"]);
    let local =
        Provider { wire: Wire::Chat, url: format!("{}/v1", stub.url()), keys: vec![], headers: BTreeMap::new() };
    let models = with(only(vec![("lmstudio", local)]));
    assert_eq!(models.chosen().await.unwrap(), [name("lmstudio/qwen3:8b")]);
    let told = ask(&models.chain(&[]).await.unwrap()[0]).await;
    assert_eq!(told.message.text(), "Here.");
    assert!(stub.heard().iter().all(|asked| !asked.headers.contains_key("authorization")), "nobody has a key for it");
    let available = models.available().await;
    let lmstudio = available.iter().find(|each| each.provider == "lmstudio").unwrap();
    assert!(lmstudio.ready && lmstudio.local && lmstudio.models.len() == 2);
    assert_eq!(lmstudio.models[1].facts.price, Some(Price::default()), "it costs nothing");
    let ollama = available.iter().find(|each| each.provider == "ollama").unwrap();
    assert!(!ollama.ready);
}

#[tokio::test]
async fn without_anybody_the_variables_are_named() {
    // What answers there is no server of models.
    let other = Stub::with(|_| Reply::html());
    let url = format!("{}/models/none", other.url());
    let local = Provider { wire: Wire::Chat, url, keys: vec![], headers: BTreeMap::new() };
    let mut settings = only(vec![("vllm", local)]);
    for (name, provider) in settings.providers.iter_mut().filter(|(_, provider)| !provider.keys.is_empty()) {
        provider.keys = vec![format!("KEY_OF_{}", name.to_uppercase())];
    }
    let error = with(settings).chosen().await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::NotFound);
    let hint = error.hint.unwrap();
    for variable in ["KEY_OF_ANTHROPIC", "KEY_OF_OPENAI", "KEY_OF_GEMINI", "KEY_OF_OPENROUTER", "ollama serve"] {
        assert!(hint.contains(variable), "{hint}");
    }
}

#[tokio::test]
async fn a_model_without_a_key_is_left_out_if_there_is_another() {
    let stub = Stub::with(|_| Reply::say("Second."));
    let mut settings = only(vec![("second", provider(Wire::Chat, stub.base(haft_stub::Wire::Chat)))]);
    settings.models = vec![name("anthropic/claude-sonnet-4-5"), name("second/m")];
    let models = with(settings);
    let chain = models.chain(&[]).await.unwrap();
    assert_eq!(chain.iter().map(|model| model.name().to_string()).collect::<Vec<_>>(), ["second/m"]);
    let error = models.chain(&[name("anthropic/claude-sonnet-4-5")]).await.map(|_| ()).unwrap_err();
    assert!(error.message.contains("no key") && error.hint.unwrap().contains("NOBODY_HAS_THIS"));
    let error = models.get(&name("nobody/m")).await.map(|_| ()).unwrap_err();
    assert!(error.message.contains("nobody knows the provider"), "{error:?}");
}

#[tokio::test]
async fn what_a_user_says_of_a_model_goes_before_what_haft_knows() {
    let said = Facts { window: 9, max_output: 8, price: None };
    let mut settings = only(vec![]);
    settings.facts.insert(name("openai/gpt-5"), said);
    let models = with(settings);
    assert_eq!(models.facts(&name("openai/gpt-5")), said);
    assert_eq!(models.facts(&name("openai/gpt-5-mini")).price.unwrap().output, 2_000_000);
}
