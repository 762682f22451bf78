//! Who makes vectors of texts.

use super::table::Table;
use crate::media::Endpoint;
use crate::scene::Scene;
use crate::tool::off_thread;
use crate::web::{Credential, Request};
use haft_core::memory::narrowed;
use haft_core::preview::{cut, inert};
use haft_core::web::Target;
use haft_core::{CallError, ErrorKind};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// How long a model may take for one request.
const PATIENCE: Duration = Duration::from_secs(20);
/// The most that it may say: 64 vectors of 4096 numbers as text.
const ANSWER_MAX: usize = 8 << 20;
const DIMS_MAX: usize = 4096;
/// So much of a text is sent, in bytes.
const TEXT_MAX: usize = 8000;

/// Who makes vectors.
#[derive(Clone)]
pub(crate) enum Embedder {
    /// The table of word vectors.
    Table(Arc<Table>),
    /// A model.
    Endpoint(Endpoint),
}

impl Embedder {
    /// What its vectors are known by.
    pub(crate) fn model(&self) -> String {
        match self {
            Self::Table(_) => Table::MODEL.to_owned(),
            Self::Endpoint(endpoint) => format!("{}@{}", endpoint.model, endpoint.url),
        }
    }

    /// How many pieces are made vectors of at once: while a call waits, and in the background.
    pub(crate) fn portion(&self) -> (usize, usize) {
        match self {
            Self::Table(_) => (1024, 512),
            Self::Endpoint(_) => (64, 64),
        }
    }

    /// The vector of each text.
    pub(crate) async fn embed(&self, scene: &Scene, texts: Vec<String>) -> Result<Vec<Vec<i8>>, CallError> {
        match self {
            Self::Table(table) => {
                let table = Arc::clone(table);
                off_thread(scene.halt().clone(), move || Ok(table.embed(&texts))).await
            }
            Self::Endpoint(endpoint) => asked(scene, endpoint, &texts).await,
        }
    }
}

async fn asked(scene: &Scene, endpoint: &Endpoint, texts: &[String]) -> Result<Vec<Vec<i8>>, CallError> {
    let input: Vec<&str> = texts.iter().map(|text| &text[..text.floor_char_boundary(TEXT_MAX)]).collect();
    let url = format!("{}/embeddings", endpoint.url.trim_end_matches('/'));
    let target = Target::read(&url).map_err(|error| CallError::invalid(format!("in the configuration: {error}")))?;
    let request = Request::new(&scene.way(), "POST", target)?.named_by_the_user().within(PATIENCE).at_most(ANSWER_MAX);
    let request = match &endpoint.key_env {
        None => request,
        Some(name) => {
            let key = std::env::var(name).map_err(|_| {
                CallError::failed(format!("the variable `{name}`, which should hold its key, is not set"))
            })?;
            let credential = Credential::header(request.target(), "authorization", &format!("Bearer {key}"), &key)?;
            request.signed(credential)
        }
    };
    let body = json!({"model": endpoint.model, "input": input}).to_string();
    let response = scene.way().send(request.header("content-type", "application/json")?.body(body)).await?;
    if response.status >= 400 {
        let said = response.masked(haft_core::secret::mask(&String::from_utf8_lossy(&response.body)));
        return Err(strange(endpoint, &format!("status {}: {}", response.status, cut(&inert(&said), 200))));
    }
    let answer: Value = serde_json::from_slice(&response.body)
        .map_err(|error| strange(endpoint, &format!("it is not JSON: {error}")))?;
    vectors(&answer, texts.len()).map_err(|why| strange(endpoint, why))
}

/// The vectors of an answer, in the order of the texts.
fn vectors(answer: &Value, wanted: usize) -> Result<Vec<Vec<i8>>, &'static str> {
    let data = answer["data"].as_array().ok_or("there is no `data` in it")?;
    let mut all = vec![Vec::new(); wanted];
    for (number, item) in data.iter().enumerate() {
        let at = item["index"].as_u64().and_then(|at| usize::try_from(at).ok()).unwrap_or(number);
        let numbers = item["embedding"].as_array().ok_or("there is no `embedding` in it")?;
        let slot = all.get_mut(at).ok_or("it has more vectors than were asked for")?;
        #[expect(clippy::cast_possible_truncation, reason = "as exact as it has to be")]
        let numbers: Vec<f32> = numbers.iter().map(|number| number.as_f64().unwrap_or_default() as f32).collect();
        *slot = narrowed(&numbers);
    }
    let dims = all.first().map_or(0, Vec::len);
    if !(1..=DIMS_MAX).contains(&dims) {
        return Err("its vectors have none or too many numbers");
    }
    if all.iter().any(|vector| vector.len() != dims) { Err("its vectors are not of one length") } else { Ok(all) }
}

fn strange(endpoint: &Endpoint, why: &str) -> CallError {
    CallError::new(ErrorKind::Upstream, format!("the answer of {} cannot be used: {why}", inert(&endpoint.model)))
        .hint("`memory.embeddings` in the configuration says who is asked")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_taken_whole_or_not_at_all() {
        let good = json!({"data": [{"index": 1, "embedding": [0.0, 1.0]}, {"index": 0, "embedding": [1, 0]}]});
        assert_eq!(vectors(&good, 2).unwrap(), [[127, 0], [0, 127]]);
        for (bad, why) in [
            (json!({}), "no `data`"),
            (json!({"data": [{"embedding": [1.0]}]}), "not of one length"),
            (json!({"data": [{"embedding": [1.0]}, {"embedding": "x"}]}), "no `embedding`"),
            (json!({"data": [{"index": 7, "embedding": [1.0]}]}), "more vectors"),
            (json!({"data": [{"embedding": []}, {"embedding": []}]}), "none or too many"),
        ] {
            assert!(vectors(&bad, 2).unwrap_err().contains(why), "{bad}");
        }
    }
}
