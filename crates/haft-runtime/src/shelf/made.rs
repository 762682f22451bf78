//! A manifest as a tool.

use super::standing::{Accepted, Care};
use super::{Whose, calls, command, http, python};
use crate::scene::Scene;
use crate::secrets::missing;
use crate::tool::{Aim, BoxFuture, Reply, Tool};
use haft_core::manifest::template::{Unfit, Values};
use haft_core::manifest::{Exec, Format, Kind, Manifest};
use haft_core::outcome::Label;
use haft_core::tool::Outward;
use haft_core::{CallError, ToolSpec};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// A little more than what is run may take, so that it is that which says that it took too long.
const SLACK: Duration = Duration::from_secs(10);

/// A tool that a manifest makes.
pub(crate) struct Made {
    manifest: Arc<Manifest>,
    /// Its own directory.
    dir: PathBuf,
    whose: Whose,
    spec: Arc<ToolSpec>,
    /// What it was accepted as, if it is a project's.
    accepted: Option<Arc<Accepted>>,
}

impl Made {
    /// The tool of a manifest that was found in this directory.
    pub(crate) fn new(manifest: Arc<Manifest>, dir: PathBuf, whose: Whose) -> Result<Self, CallError> {
        let spec = Arc::new(spec(&manifest)?);
        Ok(Self { manifest, dir, whose, spec, accepted: None })
    }

    /// The same, as far as it was accepted.
    #[must_use]
    pub(crate) fn accepted(mut self, accepted: Option<Arc<Accepted>>) -> Self {
        self.accepted = accepted;
        self
    }

    /// Whether this is still the tool that was decided upon, and that somebody accepted.
    fn check(&self, scene: &Scene) -> Result<(), CallError> {
        let name = &self.manifest.name;
        if scene.spec().reach.declared != self.spec.reach.declared {
            let message = format!("the manifest of `{name}` changed after it was decided upon; nothing ran");
            return Err(CallError::conflict(message).hint("call it again: it is then decided as it is now"));
        }
        self.accepted.as_ref().map_or(Ok(()), |accepted| accepted.check(Care::Warm))
    }

    /// What it was accepted as, to be looked at again right before something of it runs. None for the user's own.
    pub(super) fn pinned(&self) -> Option<Arc<Accepted>> {
        self.accepted.clone()
    }

    /// What it says.
    pub(crate) fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The same, to be kept.
    pub(crate) fn shared(&self) -> Arc<Manifest> {
        Arc::clone(&self.manifest)
    }

    /// Whose it is.
    pub(crate) fn whose(&self) -> Whose {
        self.whose
    }

    /// Where it lies, with what belongs to it.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// The secrets that it declares, by name. One that is required and nowhere is an error before anything runs.
    pub(crate) fn secrets(&self, scene: &Scene) -> Result<BTreeMap<String, String>, CallError> {
        let mut found = BTreeMap::new();
        for (name, declared) in &self.manifest.permissions.secrets {
            match scene.secret(name)? {
                Some(secret) => drop(found.insert(name.clone(), secret.value().to_owned())),
                None if declared.required => return Err(missing(name)),
                None => {}
            }
        }
        Ok(found)
    }
}

/// What the templates of a call are filled in with.
pub(crate) fn inputs(args: &Value) -> Map<String, Value> {
    args.as_object().cloned().unwrap_or_default()
}

/// Why a template could not be filled in, as the caller hears it.
pub(crate) fn unfit(error: &Unfit) -> CallError {
    CallError::invalid(error.to_string())
}

/// A reply from what came out: words, or a value.
pub(crate) fn reply(format: Format, text: String, value: Option<Value>) -> Reply {
    let text = match (&value, format) {
        (Some(value), Format::Json) => serde_json::to_string_pretty(value).unwrap_or(text),
        _ => text,
    };
    Reply { text, data: value, ..Reply::default() }
}

fn spec(manifest: &Manifest) -> Result<ToolSpec, CallError> {
    let bad = |error: haft_core::name::BadName| CallError::invalid(error.to_string());
    let mut spec = ToolSpec::new(&manifest.name, manifest.description.trim())
        .map_err(bad)?
        .input(manifest.inputs.schema.clone())
        .timeout(Duration::from_millis(manifest.timeout_ms()) + SLACK);
    spec.shapes.output.clone_from(&manifest.outputs.schema);
    spec = match manifest.kind {
        Kind::Http => spec.acts().web(Outward::Made),
        Kind::Command | Kind::Python => spec.runs(),
        Kind::Mcp | Kind::Pipeline => spec.acts(),
    };
    let permissions = &manifest.permissions;
    // What the kernel lets only look may run beside others.
    let looks = permissions.fs.write.is_empty() && !permissions.network.is_any();
    spec.effects.concurrency_safe = match &manifest.exec {
        Exec::Http(http) => http.method == "GET",
        Exec::Command(_) | Exec::Python(_) => looks,
        Exec::Mcp(_) | Exec::Pipeline(_) => false,
    };
    Ok(spec.declared(manifest.declared()))
}

impl Tool for Made {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn act<'a>(&'a self, scene: &'a Scene) -> BoxFuture<'a, Result<Reply, CallError>> {
        Box::pin(async move {
            self.check(scene)?;
            // From here on they are at hand; some are told by programs that take their time.
            scene.fetch_secrets(&self.manifest.permissions.secrets.keys().cloned().collect::<Vec<_>>()).await?;
            let mut reply = match &self.manifest.exec {
                Exec::Http(http) => http::run(self, http, scene).await?,
                Exec::Command(command) => command::run(self, command, scene).await?,
                Exec::Python(python) => python::run(self, python, scene).await?,
                Exec::Mcp(mcp) => calls::forward(mcp, scene).await?,
                Exec::Pipeline(pipeline) => calls::run(pipeline, scene).await?,
            };
            reply.warnings.extend(scene.shelf().unread(&self.manifest.name));
            // What reaches others may say what others want.
            if self.spec.effects.open_world && !reply.labels.contains(&Label::Untrusted) {
                reply.labels.push(Label::Untrusted);
            }
            Ok(reply)
        })
    }

    fn barred(&self) -> Option<String> {
        self.accepted.as_ref().and_then(|accepted| accepted.barred(Care::Warm))
    }

    fn aim(&self, args: &Value) -> Result<Aim, CallError> {
        match &self.manifest.exec {
            Exec::Http(http) => http::aim(&self.manifest, http, args),
            _ => Err(CallError::internal("the tool does not go to the web")),
        }
    }
}

/// Secrets as they are shown to whoever decides: by their names.
pub(crate) fn named_secrets(manifest: &Manifest) -> BTreeMap<String, String> {
    manifest.permissions.secrets.keys().map(|name| (name.clone(), format!("<{name}>"))).collect()
}

/// Both kinds of values, borrowed.
pub(crate) fn values<'v>(inputs: &'v Map<String, Value>, secrets: &'v BTreeMap<String, String>) -> Values<'v> {
    Values { inputs, secrets }
}
