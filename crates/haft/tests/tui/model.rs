//! The model that is talked to: scripted, and known to haft by its configuration.

use crate::Env;
use haft_stub::{Reply, Stub, Wire};

/// A scripted model.
pub(crate) struct Model {
    stub: Stub,
}

impl Model {
    /// One that gives these answers.
    pub(crate) fn new(script: Vec<Reply>) -> Self {
        Self { stub: Stub::start(script) }
    }

    /// Makes it the model of somebody.
    pub(crate) fn known_to(&self, env: &Env) {
        let url = self.stub.base(Wire::Anthropic);
        let config = format!(
            "models:\n  use: [stub/stub-1]\n  providers:\n    stub: {{wire: anthropic, url: \"{url}\"}}\n  known:\n    \
             stub/stub-1: {{window: 200000, max_output: 4000, input: 1, output: 1}}\n"
        );
        let dir = env.dir.path().join("home/.config/haft");
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join("config.yml"), config).unwrap();
    }

    /// Whether it was told something, in any request.
    pub(crate) fn was_told(&self, words: &str) -> bool {
        self.stub.asked().iter().any(|asked| asked.says(words))
    }

    /// What was wrong with what it was told.
    pub(crate) fn faults(&self) -> Vec<String> {
        self.stub.faults()
    }
}
