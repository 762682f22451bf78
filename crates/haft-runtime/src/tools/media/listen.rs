//! audio.transcribe: what is said in a recording.

use crate::confined::filter::{Filter, filter};
use crate::media::{Given, Material, Transcriber, model};
use crate::scene::Scene;
use crate::tool::{BoxFuture, Reply, Tool, off_thread};
use crate::tools::declare;
use haft_core::outcome::Label;
use haft_core::place::Access;
use haft_core::shape::detect;
use haft_core::tool::Outward;
use haft_core::{CallError, ToolSpec};
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;

/// The most that a program may print.
const OUTPUT_MAX: usize = 4 << 20;

#[derive(Deserialize)]
struct Args {
    #[serde(flatten)]
    given: Given,
    language: Option<String>,
}

/// The tool.
pub(super) fn tool() -> Arc<dyn Tool> {
    Arc::new(Listen(Arc::new(spec())))
}

struct Listen(Arc<ToolSpec>);

impl Tool for Listen {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.0
    }

    fn act<'a>(&'a self, scene: &'a Scene) -> BoxFuture<'a, Result<Reply, CallError>> {
        Box::pin(listen(scene))
    }
}

fn spec() -> ToolSpec {
    let more = json!({"language": {
        "type": "string", "pattern": "^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})?$", "description": "The spoken language, e.g. `en`"
    }});
    declare("audio.transcribe", "Transcribe speech in an audio recording to text (WAV, OGG, MP3, FLAC, WebM, M4A).")
        .hint("speech to text whisper voice recording dictation")
        .input(super::input(&more))
        .output(json!({
            "type": "object",
            "properties": {"by": {"type": "string"}, "audio": {"type": "string"}},
            "required": ["by", "audio"]
        }))
        .touches("path", Access::Read, None)
        .body("data")
        .web(Outward::Configured)
        .timeout(model::PATIENCE * 5)
}

async fn listen(scene: &Scene) -> Result<Reply, CallError> {
    let Args { given, language } = scene.parse()?;
    let taken = scene.clone();
    let sound = off_thread(scene.halt().clone(), move || sound(Material::take(&taken, &given)?)).await?;
    let shown = sound.shown();
    let (text, by) = match &scene.media().transcriber {
        Some(Transcriber::Endpoint(endpoint)) => {
            (model::listen(scene, endpoint, &sound, language.as_deref()).await?, endpoint.model.clone())
        }
        Some(Transcriber::Command(argv, timeout)) => {
            let by = argv.first().cloned().unwrap_or_default();
            let (argv, timeout, heard) = (argv.clone(), *timeout, scene.clone());
            let work = move || {
                let wanted = Filter { argv: &argv, material: &sound.bytes, project: true, timeout, output: OUTPUT_MAX };
                filter(&heard, &wanted)
            };
            let printed = off_thread(scene.halt().clone(), work).await?;
            (String::from_utf8_lossy(&printed).trim().to_owned(), by)
        }
        None => {
            return Err(CallError::failed("nobody is there to listen").hint(
                "name who does in the configuration: `media: {transcribe: {url, model, key_env}}`, or a program: \
                 `media: {transcribe: {command: [whisper-cli, -nt, -f, \"{file}\"]}}`",
            ));
        }
    };
    let mut reply = Reply::text(text).data(json!({"by": by, "audio": shown}));
    if reply.text.is_empty() {
        reply.warnings.push("nothing was understood".to_owned());
    }
    // Whoever speaks in a recording may speak to whoever reads it.
    reply.labels.push(Label::Untrusted);
    Ok(reply)
}

fn sound(material: Material) -> Result<Material, CallError> {
    // By its bytes, not by what is said of it: else any file could be sent away under the name of one.
    let found = detect(&material.bytes).map_or("", |found| found.mime);
    if found.starts_with("audio/") || found.starts_with("video/") {
        Ok(material)
    } else {
        Err(CallError::invalid(format!("{} is not a recording", material.shown())))
    }
}
