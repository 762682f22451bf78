//! api.setup: what is known of an API, so that calling it needs no guessing.

use crate::scene::Scene;
use crate::tool::{Blocking, Reply, Tool};
use crate::tools::declare;
use crate::web::profiles::{self, Auth, Held, Profile, Profiles};
use haft_core::preview::inert;
use haft_core::record::{masked, unmasked};
use haft_core::secret::MASK;
use haft_core::{CallError, Checked};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// The tools.
pub fn all() -> Vec<Arc<dyn Tool>> {
    let spec = declare(
        NAME,
        "Save profiles of REST APIs; web.request then signs in and keeps to rate limits by itself. A profile has id, \
         name, base_url, description, endpoints [{method, path, description}] and guidelines, optionally auth, \
         rate_limit, avoid and notes. auth is {type: basic, username, password}, {type: bearer, token}, {type: \
         header, name, value} or {type: query, name, value}; ${NAME} stands for an environment variable. update \
         changes only the given fields.",
    )
    .hint("api profile credentials rate limit configure rest service")
    .input(json!({
        "type": "object", "additionalProperties": false, "required": ["action"], "properties": {
            "action": {"type": "string", "enum": ["create", "update", "delete", "list", "view"]},
            "id": {"type": "string", "description": "The profile's id, for update, delete and view", "minLength": 1, "maxLength": 64},
            "profile": {"type": "object", "description": "The profile, or the fields to update", "maxProperties": 16}
        }
    }))
    .acts()
    .only_reads_when("action", &["list", "view"])
    .on_credentials()
    .body("profile");
    vec![Blocking::tool(spec, set_up)]
}

/// The name of the tool.
const NAME: &str = "api.setup";

/// Arguments as anybody may see them: without a key that is written down.
pub(crate) fn shown_args(checked: &Checked) -> Value {
    let mut args = checked.args().clone();
    if checked.spec().name.as_str() == NAME
        && let Some(auth) = args.pointer_mut("/profile/auth")
    {
        profiles::hide(auth);
    }
    args
}

/// The same without any secret that stands in them by name, by the tool's schema, or in a command.
pub(crate) fn masked_args(checked: &Checked) -> Value {
    let spec = checked.spec();
    masked(&shown_args(checked), &spec.shapes.input, &spec.reach.bodies)
}

/// Arguments that a person has edited without seeing the secrets in them.
pub(crate) fn edited_args(edited: Value, before: &Checked) -> Result<Value, CallError> {
    let hidden = || {
        CallError::invalid("the edited arguments hold `[secret]` where it cannot be told which secret is meant")
            .hint("leave each `[secret]` where it stood, or write the value in its place")
    };
    let edited = with_keys(edited, before);
    unmasked(edited, before.args(), &masked_args(before)).ok_or_else(hidden)
}

/// The same as one line says it: an update with what the profile has already, so that a person sees what goes where.
pub(crate) fn preview(checked: &Checked, shown: &Value, profiles: &Profiles, columns: usize) -> String {
    let mut args = shown.clone();
    let known = args["id"].as_str().filter(|_| args["action"] == "update").and_then(|id| profiles.get(id).ok());
    if let (NAME, Some(known)) = (checked.spec().name.as_str(), known) {
        let known = known.shown();
        for field in ["base_url", "auth"] {
            let given = args["profile"].get(field).is_some();
            if !given && args["profile"].is_object() {
                args["profile"][field] = known[field].clone();
            }
        }
    }
    checked.preview_with(&args, columns)
}

/// Arguments that a person has edited without seeing the key in them.
pub(crate) fn with_keys(mut edited: Value, before: &Checked) -> Value {
    let kept = before.args().pointer("/profile/auth").and_then(Value::as_object);
    if before.spec().name.as_str() == NAME
        && let (Some(auth), Some(kept)) = (edited.pointer_mut("/profile/auth").and_then(Value::as_object_mut), kept)
    {
        for (name, value) in auth.iter_mut().filter(|(_, value)| *value == MASK) {
            *value = kept.get(name).cloned().unwrap_or_default();
        }
    }
    edited
}

#[derive(Deserialize)]
struct Args {
    action: String,
    id: Option<String>,
    profile: Option<Map<String, Value>>,
}

impl Args {
    fn id(&self) -> Result<&str, CallError> {
        let missing = || CallError::invalid(format!("`id` is missing: which profile to {}", self.action));
        self.id.as_deref().ok_or_else(missing)
    }

    fn profile(&self) -> Result<Map<String, Value>, CallError> {
        let missing = || CallError::invalid(format!("`profile` is missing: what to {}", self.action));
        self.profile.clone().ok_or_else(missing)
    }
}

fn set_up(scene: &Scene) -> Result<Reply, CallError> {
    let args: Args = scene.parse()?;
    let profiles = scene.web().profiles();
    match args.action.as_str() {
        "list" => Ok(listed(&profiles.all()?)),
        "view" => Ok(viewed(&*profiles.get(args.id()?)?)),
        "delete" => {
            profiles.remove(args.id()?)?;
            Ok(Reply::text(format!("Deleted the API profile {}", args.id()?)).data(json!({ "id": args.id()? })))
        }
        "create" => create(profiles, &args),
        _ => update(profiles, &args),
    }
}

fn create(profiles: &Profiles, args: &Args) -> Result<Reply, CallError> {
    let mut given = args.profile()?;
    if let Some(id) = &args.id {
        given.entry("id").or_insert_with(|| id.as_str().into());
        if given["id"] != id.as_str() {
            return Err(CallError::invalid("`id` and the id in `profile` differ"));
        }
    }
    let profile = Profile::read(&given.into())?;
    if profiles.all()?.iter().any(|held| held.id == profile.id) {
        return Err(CallError::conflict(format!("there is an API profile `{}` already", profile.id))
            .hint("update or delete it, or take another id"));
    }
    saved(profiles, &profile, "Created")
}

/// Changes the fields that are given. Credentials do not move to another host by themselves.
fn update(profiles: &Profiles, args: &Args) -> Result<Reply, CallError> {
    let known = profiles.get(args.id()?)?;
    let given = args.profile()?;
    let mut value = serde_json::to_value(&*known).unwrap_or_default();
    for (name, field) in &given {
        match field {
            Value::Null => {
                value.as_object_mut().and_then(|object| object.remove(name));
            }
            field => value[name] = field.clone(),
        }
    }
    let profile = Profile::read(&value)?;
    if profile.id != known.id {
        return Err(
            CallError::invalid("an id does not change").hint("create a profile of the new id, and delete this one")
        );
    }
    let moved = !profile.base()?.same_origin(&known.base()?);
    if moved && profile.auth.is_some() && !given.contains_key("auth") {
        return Err(CallError::invalid(
            "base_url leads to another host, and what signs in to the old one is not sent there",
        )
        .hint("give `auth` for the new host as well, or null for none"));
    }
    saved(profiles, &profile, "Updated")
}

fn saved(profiles: &Profiles, profile: &Profile, done: &str) -> Result<Reply, CallError> {
    profiles.save(profile)?;
    let mut reply = Reply::text(format!("{done} the API profile {}; it counts from now on", profile.id));
    if profile.auth.as_ref().is_some_and(Auth::is_literal) {
        reply.warnings.push(
            "the profile holds the key itself; `${NAME}` would take it from the environment, where it is not kept in a file"
                .to_owned(),
        );
    }
    Ok(reply.data(json!({ "profile": profile.shown() })))
}

fn listed(all: &[Held]) -> Reply {
    let line = |held: &Held| match &held.state {
        Ok(profile) => format!("{}: {} ({})", held.id, inert(&profile.name), inert(&profile.base_url)),
        Err(why) => format!("{}: cannot be used: {why}", held.id),
    };
    let data = |held: &Held| match &held.state {
        Ok(profile) => json!({"id": held.id, "name": profile.name, "base_url": profile.base_url,
            "description": profile.description, "endpoints": profile.endpoints.len()}),
        Err(why) => json!({"id": held.id, "problem": why}),
    };
    let text = match all {
        [] => "No API profiles".to_owned(),
        all => all.iter().map(line).collect::<Vec<_>>().join("\n"),
    };
    Reply::text(text).data(json!({ "profiles": all.iter().map(data).collect::<Vec<_>>() }))
}

fn viewed(profile: &Profile) -> Reply {
    let shown = profile.shown();
    Reply::text(serde_json::to_string_pretty(&shown).unwrap_or_default()).data(json!({ "profile": shown }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Stage;
    use haft_core::ErrorKind;

    fn acme() -> Value {
        json!({
            "id": "acme", "name": "Acme", "base_url": "https://api.acme.test/v1",
            "description": "Orders and customers of the Acme shop.",
            "auth": {"type": "header", "name": "X-Key", "value": "hunter2hunter2"},
            "endpoints": [{"method": "GET", "path": "/orders", "description": "All orders"}],
            "guidelines": "Ask for at most 50 at once"
        })
    }

    fn set(stage: &Stage, args: Value) -> Result<Reply, CallError> {
        stage.act(&all()[0], args)
    }

    #[test]
    fn a_profile_lives_from_create_to_delete_and_never_shows_its_key() {
        let stage = Stage::new();
        let created = set(&stage, json!({"action": "create", "profile": acme()})).unwrap();
        assert_eq!(created.text, "Created the API profile acme; it counts from now on");
        assert!(created.warnings[0].contains("holds the key itself"), "{:?}", created.warnings);
        let again = set(&stage, json!({"action": "create", "profile": acme()})).unwrap_err();
        assert_eq!(again.kind, ErrorKind::Conflict);
        let listed = set(&stage, json!({"action": "list"})).unwrap();
        assert_eq!(listed.text, "acme: Acme (https://api.acme.test/v1)");
        let change = json!({"notes": ["Slow on Mondays"], "auth": {"type": "bearer", "token": "${ACME_TOKEN}"}});
        let updated = set(&stage, json!({"action": "update", "id": "acme", "profile": change})).unwrap();
        assert!(updated.warnings.is_empty());
        let viewed = set(&stage, json!({"action": "view", "id": "acme"})).unwrap();
        assert!(viewed.text.contains("Slow on Mondays") && viewed.text.contains("${ACME_TOKEN}"), "{}", viewed.text);
        for reply in [&created, &updated, &viewed, &listed] {
            assert!(!format!("{reply:?}").contains("hunter2"), "{reply:?}");
        }
        set(&stage, json!({"action": "delete", "id": "acme"})).unwrap();
        assert_eq!(set(&stage, json!({"action": "list"})).unwrap().text, "No API profiles");
        assert_eq!(set(&stage, json!({"action": "view", "id": "acme"})).unwrap_err().kind, ErrorKind::NotFound);
    }

    #[test]
    fn a_key_does_not_move_to_another_host_by_itself() {
        let stage = Stage::new();
        set(&stage, json!({"action": "create", "profile": acme()})).unwrap();
        let moved = json!({"base_url": "https://api.evil.test/v1"});
        let error = set(&stage, json!({"action": "update", "id": "acme", "profile": moved})).unwrap_err();
        assert!(error.message.contains("another host"), "{}", error.message);
        let path = json!({"base_url": "https://api.acme.test/v2"});
        set(&stage, json!({"action": "update", "id": "acme", "profile": path})).unwrap();
        let without = json!({"base_url": "https://api.evil.test/v1", "auth": null});
        set(&stage, json!({"action": "update", "id": "acme", "profile": without})).unwrap();
        let renamed = json!({"id": "other"});
        assert!(set(&stage, json!({"action": "update", "id": "acme", "profile": renamed})).is_err());
    }

    #[test]
    fn what_is_missing_is_said() {
        let stage = Stage::new();
        for (args, expected) in [
            (json!({"action": "create"}), "`profile` is missing"),
            (json!({"action": "view"}), "`id` is missing"),
            (json!({"action": "create", "id": "b", "profile": acme()}), "differ"),
            (
                json!({"action": "create", "profile": {"id": "a", "base_url": "https://a.test"}}),
                "- endpoints: at least one",
            ),
            (json!({"action": "delete", "id": "../../x"}), "there is no API profile"),
        ] {
            let error = set(&stage, args.clone()).unwrap_err();
            assert!(error.message.contains(expected), "{args}: {}", error.message);
        }
    }
}
