//! image.analyze: what a model with eyes says about a picture.

use crate::media::{Given, Material, model, picture};
use crate::scene::Scene;
use crate::tool::{BoxFuture, Reply, Tool, off_thread};
use crate::tools::declare;
use haft_core::outcome::Label;
use haft_core::place::Access;
use haft_core::shape::detect;
use haft_core::tool::Outward;
use haft_core::{CallError, ErrorKind, ToolSpec};
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;

const USUAL_PROMPT: &str = "Describe this image. Say what text it holds, word by word.";

#[derive(Deserialize)]
struct Args {
    #[serde(flatten)]
    given: Given,
    prompt: Option<String>,
}

/// The tool.
pub(super) fn tool() -> Arc<dyn Tool> {
    Arc::new(Look(Arc::new(spec())))
}

struct Look(Arc<ToolSpec>);

impl Tool for Look {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.0
    }

    fn act<'a>(&'a self, scene: &'a Scene) -> BoxFuture<'a, Result<Reply, CallError>> {
        Box::pin(look(scene))
    }
}

fn spec() -> ToolSpec {
    let more = json!({"prompt": {"type": "string", "minLength": 1, "maxLength": 8000, "description": "The question, or what to look for"}});
    declare(
        "image.analyze",
        "Describe an image or answer a question about it with a vision model (PNG, JPEG, GIF, WebP, TIFF, BMP). Returns text.",
    )
    .hint("vision picture photo screenshot describe ocr look")
    .input(super::input(&more))
    .output(json!({
        "type": "object",
        "properties": {"model": {"type": "string"}, "image": {"type": "string"}},
        "required": ["model", "image"]
    }))
    .touches("path", Access::Read, None)
    .body("data")
    .web(Outward::Configured)
    .timeout(model::PATIENCE + model::PATIENCE / 2)
}

async fn look(scene: &Scene) -> Result<Reply, CallError> {
    let Args { given, prompt } = scene.parse()?;
    let taken = scene.clone();
    let work = move || seen(&Material::take(&taken, &given)?);
    let (shown, mime, base64) = off_thread(scene.halt().clone(), work).await?;
    let prompt = prompt.as_deref().unwrap_or(USUAL_PROMPT);
    let (text, by) = match &scene.media().vision {
        Some(endpoint) => {
            let url = format!("data:{mime};base64,{base64}");
            (model::look(scene, endpoint, prompt, &url).await?, endpoint.model.clone())
        }
        None => sampled(scene, prompt, mime, base64).await?,
    };
    // What a picture says may be meant for whoever reads its description.
    let data = json!({"model": by, "image": shown});
    Ok(Reply { labels: vec![Label::Untrusted], ..Reply::text(text).data(data) })
}

/// The image in words, its type and its bytes as text.
fn seen(material: &Material) -> Result<(String, &'static str, String), CallError> {
    let found = detect(&material.bytes).filter(|found| found.mime.starts_with("image/")).ok_or_else(|| {
        CallError::invalid(format!("{} is not an image", material.shown()))
            .hint("PNG, JPEG, GIF, WebP, TIFF and BMP are")
    })?;
    let (picture, how) = picture::prepared(&material.name, &material.bytes, found)?;
    Ok((format!("{}{how}", material.shown()), picture.mime(), picture.base64()))
}

/// Without an endpoint of its own, haft asks the caller's model, if a person agrees.
async fn sampled(scene: &Scene, prompt: &str, mime: &str, image: String) -> Result<(String, String), CallError> {
    let request = json!({
        "maxTokens": 2048,
        "messages": [
            {"role": "user", "content": {"type": "text", "text": prompt}},
            {"role": "user", "content": {"type": "image", "data": image, "mimeType": mime}},
        ],
    });
    let none = |why: &str| {
        CallError::failed(format!("there is no model that could look at it: {why}")).hint(
            "name one with `media: {vision: {url, model, key_env}}` in the configuration, or use a client that offers sampling",
        )
    };
    let answer = scene.back().sample("image.analyze", request).await.map_err(|error| match error.kind {
        ErrorKind::Rejected | ErrorKind::Cancelled => error,
        ErrorKind::ApprovalRequired => none("none is configured, and nobody is here who offers one"),
        _ => none(&error.message),
    })?;
    let content = &answer["content"];
    let text = content["text"].as_str().or_else(|| content[0]["text"].as_str()).unwrap_or_default();
    let by = answer["model"].as_str().unwrap_or("the caller's model");
    if text.is_empty() {
        Err(CallError::new(ErrorKind::Upstream, "the model said nothing"))
    } else {
        Ok((text.to_owned(), by.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Stage;

    #[test]
    fn what_is_no_image_is_not_looked_at() {
        let stage = Stage::new();
        stage.file("notes.png", "these are words");
        for args in [json!({"data": "aGVsbG8="}), json!({"path": "notes.png", "mime_type": "image/png"})] {
            let error = stage.act(&tool(), args).unwrap_err();
            assert!(error.message.contains("is not an image"), "{}", error.message);
        }
        for args in [json!({}), json!({"path": "notes.png", "data": "aGVsbG8="})] {
            assert_eq!(stage.act(&tool(), args).unwrap_err().kind, ErrorKind::InvalidInput);
        }
    }
}
