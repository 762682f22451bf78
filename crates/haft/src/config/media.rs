//! Who looks at pictures and listens to sounds, as the configuration says it.

use super::error::ConfigError;
use super::merge::nearer;
use super::placed::{Spot, Text};
use haft_core::web::Target;
use haft_runtime::confined::filter::FILE;
use haft_runtime::media::{Endpoint, MediaSettings, Transcriber};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

const USUAL_PATIENCE: Duration = Duration::from_mins(5);

/// Who looks at pictures and listens to sounds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Media {
    /// A model with vision, for image.analyze.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vision: Option<Model>,
    /// Who turns sound into text, for audio.transcribe: a model or a program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transcribe: Option<Listener>,
}

/// A model behind an OpenAI-compatible address.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// The base of its address, like `https://api.example.com/v1`.
    pub url: Text,
    /// Which model.
    pub model: Text,
    /// The variable of the environment that holds its key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_env: Option<Text>,
}

/// A model, or a program on this machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Listener {
    /// A program. It runs confined: without network, and without writing anything.
    Program(Command),
    /// A model.
    Model(Model),
}

/// A program that prints what it hears.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Command {
    /// The program and its arguments; `{file}` stands for the recording.
    pub command: Vec<Text>,
    /// How long it may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

impl Model {
    pub(super) fn each_spot(&mut self, visit: &mut dyn FnMut(&mut Spot)) {
        for text in [&mut self.url, &mut self.model].into_iter().chain(&mut self.key_env) {
            visit(&mut text.spot);
        }
    }

    pub(super) fn wanted(&self) -> Result<Endpoint, ConfigError> {
        Target::read(&self.url.value).map_err(|error| ConfigError::malformed(&self.url.spot, error.to_string()))?;
        let key_env = self.key_env.as_ref().map(|text| text.value.clone());
        Ok(Endpoint { url: self.url.value.clone(), model: self.model.value.clone(), key_env })
    }
}

impl Listener {
    fn wanted(&self) -> Result<Transcriber, ConfigError> {
        let Command { command, timeout_ms } = match self {
            Self::Model(model) => return model.wanted().map(Transcriber::Endpoint),
            Self::Program(program) => program,
        };
        let Some(first) = command.first() else {
            return Err(ConfigError::malformed(&Spot::BuiltIn, "`media.transcribe.command` is empty"));
        };
        if !command.iter().any(|word| word.value.contains(FILE)) {
            let why = format!("none of the command's arguments has `{FILE}` in it, which stands for the recording");
            return Err(ConfigError::malformed(&first.spot, why));
        }
        let timeout = timeout_ms.map_or(USUAL_PATIENCE, Duration::from_millis);
        Ok(Transcriber::Command(command.iter().map(|word| word.value.clone()).collect(), timeout))
    }
}

impl Media {
    pub(super) fn add(&mut self, layer: Self) {
        let Self { vision, transcribe } = layer;
        nearer(&mut self.vision, vision);
        nearer(&mut self.transcribe, transcribe);
    }

    pub(super) fn each_spot(&mut self, visit: &mut dyn FnMut(&mut Spot)) {
        if let Some(model) = &mut self.vision {
            model.each_spot(visit);
        }
        match &mut self.transcribe {
            Some(Listener::Model(model)) => model.each_spot(visit),
            Some(Listener::Program(program)) => program.command.iter_mut().for_each(|word| visit(&mut word.spot)),
            None => {}
        }
    }

    /// What the runtime is told.
    pub(super) fn wanted(&self) -> Result<MediaSettings, ConfigError> {
        Ok(MediaSettings {
            vision: self.vision.as_ref().map(Model::wanted).transpose()?,
            transcriber: self.transcribe.as_ref().map(Listener::wanted).transpose()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(yaml: &str) -> Result<MediaSettings, String> {
        let config = super::super::parse(yaml.as_bytes(), &"config.yml".into()).map_err(|error| error.to_string())?;
        config.media.wanted().map_err(|error| error.to_string())
    }

    #[test]
    fn a_listener_is_a_model_or_a_program() {
        let model = said("media: {transcribe: {url: \"https://a.example/v1\", model: w, key_env: KEY}}").unwrap();
        assert!(matches!(model.transcriber, Some(Transcriber::Endpoint(Endpoint { key_env: Some(_), .. }))));
        let program = said("media: {transcribe: {command: [whisper-cli, -f, \"{file}\"], timeout_ms: 1000}}").unwrap();
        let argv = ["whisper-cli", "-f", "{file}"].map(str::to_owned).to_vec();
        assert_eq!(program.transcriber, Some(Transcriber::Command(argv, Duration::from_secs(1))));
    }

    #[test]
    fn mistakes_are_pointed_at() {
        for (yaml, why) in [
            ("media: {transcribe: {command: [whisper-cli]}}", "stands for the recording"),
            ("media: {transcribe: {command: []}}", "is empty"),
            ("media: {vision: {url: \"ftp://a.example\", model: m}}", "only http and https"),
            ("media: {vision: {model: m}}", "url"),
        ] {
            let error = said(yaml).unwrap_err();
            assert!(error.contains(why), "{yaml}: {error}");
        }
    }
}
