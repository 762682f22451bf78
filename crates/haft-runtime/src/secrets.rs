//! Secrets: where they come from, and where they go. A value is asked for by name while a call runs, is noted with that
//! call, and is masked in everything that the call gives back.
//!
//! They come from haft's own environment, from the encrypted store ([`Vault`]), or from a program that the user's
//! configuration names, in this order. A secret may be bound to hosts; by reference (`secret:NAME` in a request) it goes
//! nowhere else, and one that is bound to none goes nowhere.

mod left;
mod mask;
pub(crate) mod reference;
mod told;
mod vault;

pub use mask::FORM_MIN as MASKED_MIN;
pub(crate) use mask::{Cut, Mask, bytes_by, text_by};
pub use vault::{Kept, Vault};

use haft_core::host::{HostRule, HostRules};
use haft_core::manifest::secrets::is_reserved;
use haft_core::manifest::{Declared, Kind, Reachable};
use haft_core::web::Target;
use haft_core::{CallError, ContentBody, ErrorKind, ResultContent};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The largest secret.
pub const VALUE_MAX: usize = 64 << 10;
const NAME_MAX: usize = 128;
/// How long what a program told is believed.
const TOLD_FOR: Duration = Duration::from_mins(5);
pub(crate) const NAME_RULE: &str = "a secret's name is written like a variable's: A-Z, digits and _, and no digit first; \
     HAFT_*, PATH and the like are none";

/// Whether a secret can be called so.
pub fn is_name(name: &str) -> bool {
    let letter = |c: char| c.is_ascii_uppercase() || c == '_';
    name.len() <= NAME_MAX
        && name.starts_with(letter)
        && name.contains(|c: char| c.is_ascii_uppercase())
        && name.chars().all(|c| letter(c) || c.is_ascii_digit())
        && !is_reserved(name)
}

/// A text as a secret's value: without the line end that it was written with.
fn value(name: &str, text: &str) -> Result<String, CallError> {
    let text = text.strip_suffix('\n').map_or(text, |text| text.strip_suffix('\r').unwrap_or(text));
    let bad = |why: &str| Err(CallError::invalid(format!("the secret `{name}` cannot be used: {why}")));
    match text {
        "" => bad("it is empty"),
        text if text.len() > VALUE_MAX => bad("it is longer than 64 KiB"),
        text if text.contains('\0') => bad("there is a NUL in it"),
        text => Ok(text.to_owned()),
    }
}

/// A secret that a tool cannot do without, and that nobody has.
pub(crate) fn missing(name: &str) -> CallError {
    CallError::new(ErrorKind::NotFound, format!("the secret `{name}` is declared and nowhere to be found; nothing ran"))
        .hint(format!("set it in haft's environment, or keep it with `haft secret set {name}`"))
}

/// Refuses a secret that is bound to hosts to a program that could carry it to others: what a program does with what it
/// has, nobody sees. A request is held to the hosts where it is sent.
fn stays(name: &str, bound: Option<&HostRules>, declared: &Declared) -> Result<(), CallError> {
    let (Some(bound), Kind::Command | Kind::Python) = (bound, declared.kind) else { return Ok(()) };
    let beyond = match &declared.permissions.network {
        Reachable::Any(false) => None,
        Reachable::Any(true) => Some("the whole web".to_owned()),
        Reachable::Hosts(hosts) => {
            hosts.iter().find(|host| !bound.iter().any(|most| host.is_below(most))).map(ToString::to_string)
        }
    };
    let Some(beyond) = beyond else { return Ok(()) };
    let message = format!("the secret `{name}` is bound to {bound}, and this tool may reach {beyond}; nothing ran");
    Err(CallError::new(ErrorKind::Denied, message).hint(format!(
        "let its `permissions.network` name nobody else; or a person binds the secret to that host as well, by `haft \
         secret set {name} --host HOST`, or under secrets.{name}.hosts in the user's configuration"
    )))
}

/// A secret's value. It is shown nowhere.
#[derive(Clone)]
pub struct Secret {
    name: String,
    value: Arc<str>,
    hosts: Option<HostRules>,
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret({})", self.name)
    }
}

impl Secret {
    /// The value, for whoever sends it.
    pub fn value(&self) -> &str {
        &self.value
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The hosts that it may be sent to; none if nobody said.
    pub fn hosts(&self) -> Option<&HostRules> {
        self.hosts.as_ref()
    }

    /// Whether a tool that declares this may have it.
    pub(crate) fn may_go_with(&self, declared: &Declared) -> Result<(), CallError> {
        stays(&self.name, self.hosts.as_ref(), declared)
    }

    /// Whether it may be sent there: if it is bound to hosts, only to these.
    pub fn may_go_to(&self, target: &Target) -> Result<(), CallError> {
        match &self.hosts {
            Some(hosts) if hosts.rule_for(target.host(), target.port()).is_none() => {
                Err(CallError::new(ErrorKind::Denied, elsewhere(&self.name, target, hosts)))
            }
            _ => Ok(()),
        }
    }
}

fn elsewhere(name: &str, target: &Target, hosts: &HostRules) -> String {
    let bound: Vec<String> = hosts.iter().map(ToString::to_string).collect();
    format!("the secret `{name}` is bound to {} and is not sent to {}", bound.join(", "), target.authority())
}

/// What the user's configuration says of a secret.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SecretSource {
    /// The program that tells it, with its arguments.
    pub command: Option<Vec<String>>,
    /// The hosts that it may be sent to by reference.
    pub hosts: Vec<HostRule>,
}

/// Where secrets come from.
#[derive(Debug, Default)]
pub struct Secrets {
    vault: Option<Vault>,
    sources: BTreeMap<String, SecretSource>,
    told: Mutex<HashMap<String, (Instant, Arc<str>)>>,
    opened: Mutex<Option<(Stamp, Arc<Entries>)>>,
}

/// What the store keeps, by name.
type Entries = BTreeMap<String, Kept>;

/// What tells whether a file is the one that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    ino: u64,
    size: u64,
    mtime: (i64, i64),
}

impl Secrets {
    /// From the environment, from a store, and from programs.
    pub fn new(vault: Option<Vault>, sources: BTreeMap<String, SecretSource>) -> Self {
        Self { vault, sources, ..Self::default() }
    }

    /// A secret by its name; none if nobody has it. It may take as long as the program that tells it.
    pub fn get(&self, name: &str) -> Result<Option<Secret>, CallError> {
        if is_reserved(name) {
            return Ok(None);
        }
        let found = match std::env::var(name).ok().filter(|text| !text.is_empty()) {
            Some(text) => Some(value(name, &text)?.into()),
            None => match self.kept()?.get(name) {
                Some(kept) => Some(Arc::from(kept.value.as_str())),
                None => self.told(name)?,
            },
        };
        let Some(value) = found else { return Ok(None) };
        Ok(Some(Secret { name: name.to_owned(), value, hosts: self.hosts(name)? }))
    }

    /// The hosts that a secret is bound to, whether or not there is one; none if nobody said.
    pub fn hosts(&self, name: &str) -> Result<Option<HostRules>, CallError> {
        let said = self.sources.get(name).map(|source| source.hosts.clone()).filter(|hosts| !hosts.is_empty());
        let hosts = match said {
            Some(hosts) => Some(hosts),
            None => self.kept()?.get(name).map(|kept| kept.hosts.clone()).filter(|hosts| !hosts.is_empty()),
        };
        Ok(hosts.map(HostRules::from))
    }

    /// Whether somebody has it, as far as that can be told without asking a program.
    fn is_known(&self, name: &str) -> Result<bool, CallError> {
        let source = self.sources.get(name).is_some_and(|source| source.command.is_some());
        Ok(!is_reserved(name)
            && (source || std::env::var(name).is_ok_and(|text| !text.is_empty()) || self.kept()?.contains_key(name)))
    }

    /// Why a tool that declares this cannot run: it needs a secret that nobody has, or could carry one to where that does
    /// not belong. No program is asked.
    pub(crate) fn lacking(&self, declared: &Declared) -> Option<CallError> {
        let each = |(name, secret): (&String, &haft_core::manifest::Secret)| match self.is_known(name) {
            Ok(true) => self.hosts(name).and_then(|hosts| stays(name, hosts.as_ref(), declared)).err(),
            Ok(false) => secret.required.then(|| missing(name)),
            Err(error) => Some(error),
        };
        declared.permissions.secrets.iter().find_map(each)
    }

    /// Why a secret is not sent to a target by reference. `inside` says that the target is a service of the user's own.
    pub(crate) fn refusal(&self, name: &str, target: &Target, inside: bool) -> Option<String> {
        let hosts = match self.is_known(name).and_then(|known| Ok((known, self.hosts(name)?))) {
            Ok((true, hosts)) => hosts,
            Ok((false, _)) => {
                return Some(format!("there is no secret `{name}`; a person keeps one by `haft secret set {name}`"));
            }
            Err(error) => return Some(error.message),
        };
        let Some(hosts) = hosts else {
            let host = target.host();
            return Some(format!(
                "the secret `{name}` is bound to no host, and only a person can bind it: by `haft secret set {name} \
                 --host {host}`, or under secrets.{name}.hosts in the user's configuration"
            ));
        };
        if hosts.rule_for(target.host(), target.port()).is_none() {
            return Some(elsewhere(name, target, &hosts));
        }
        let open = !target.is_secure() && !inside;
        open.then(|| format!("the secret `{name}` is not sent to {} without encryption", target.authority()))
    }

    /// What the store keeps, opened again when it has changed.
    fn kept(&self) -> Result<Arc<BTreeMap<String, Kept>>, CallError> {
        let Some(vault) = &self.vault else { return Ok(Arc::default()) };
        let Ok(meta) = std::fs::metadata(vault.file()) else {
            // Nothing is kept; or it cannot be told, and reading says why.
            return vault.all().map(Arc::new);
        };
        let stamp = Stamp { ino: meta.ino(), size: meta.size(), mtime: (meta.mtime(), meta.mtime_nsec()) };
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, kept)) = &*opened
            && *of == stamp
        {
            return Ok(Arc::clone(kept));
        }
        let kept = Arc::new(vault.all()?);
        *opened = Some((stamp, Arc::clone(&kept)));
        Ok(kept)
    }

    fn told(&self, name: &str) -> Result<Option<Arc<str>>, CallError> {
        let Some(command) = self.sources.get(name).and_then(|source| source.command.as_deref()) else {
            return Ok(None);
        };
        let held = || self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, value)) = held().get(name).filter(|(at, _)| at.elapsed() < TOLD_FOR) {
            let _ = at;
            return Ok(Some(Arc::clone(value)));
        }
        let value: Arc<str> = told::ask(name, command)?.into();
        held().insert(name.to_owned(), (Instant::now(), Arc::clone(&value)));
        Ok(Some(value))
    }
}

/// The secrets that one call has used.
#[derive(Debug, Clone, Default)]
pub(crate) struct Used(Arc<Mutex<Vec<Noted>>>);

/// One of them, and what hides it.
#[derive(Debug)]
struct Noted {
    value: Secret,
    mask: Mask,
}

impl Used {
    pub(crate) fn note(&self, secret: &Secret) {
        let mut used = self.held();
        if used.iter().all(|known| known.value.value != secret.value) {
            used.push(Noted { value: secret.clone(), mask: Mask::of([secret.value()]) });
        }
    }

    fn each(&self, mut work: impl FnMut(&Mask)) {
        self.held().iter().for_each(|used| work(&used.mask));
    }

    fn held(&self) -> MutexGuard<'_, Vec<Noted>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_empty(&self) -> bool {
        self.held().is_empty()
    }

    /// Whether bytes hold one of them.
    fn finds(&self, bytes: &[u8]) -> bool {
        let mut found = false;
        self.each(|mask| found |= mask.finds_in(bytes));
        found
    }

    /// Masks them in a text.
    pub(crate) fn mask(&self, text: &mut String) {
        self.mask_cut(text, Cut::NOWHERE);
    }

    /// Masks them in a text of which something was cut off.
    pub(crate) fn mask_cut(&self, text: &mut String, cut: Cut) {
        text_by(self.held().iter().map(|used| &used.mask), text, cut);
    }

    /// Masks them in what was printed, as far as that is there.
    pub(crate) fn mask_bytes(&self, bytes: &mut Vec<u8>, cut: Cut) {
        bytes_by(self.held().iter().map(|used| &used.mask), bytes, cut);
    }

    /// Masks them in a value, in names as well.
    pub(crate) fn mask_value(&self, value: &mut Value) {
        self.each(|mask| mask.value(value));
    }

    /// Masks them in a failure.
    pub(crate) fn mask_error(&self, error: &mut CallError) {
        self.mask(&mut error.message);
        error.hint.iter_mut().for_each(|hint| self.mask(hint));
        error.details.iter_mut().for_each(|details| self.mask_value(details));
    }

    /// Masks them in every part of a result. Encoded bytes stay as they are: a part of them replaced is no image any more.
    fn mask_content(&self, content: &mut ResultContent) {
        self.mask_attributes(&mut content.attributes);
        for block in &mut content.blocks {
            if let Some(text) = block.readable_text_mut() {
                self.mask(text);
            }
            if let ContentBody::ResourceLink { uri, name } = &mut block.body {
                self.mask(uri);
                self.mask(name);
            }
            if let ContentBody::Resource(resource) = &mut block.body {
                self.mask(&mut resource.uri);
            }
            block.attributes_mut().for_each(|attributes| self.mask_attributes(attributes));
        }
    }

    fn mask_attributes(&self, attributes: &mut Map<String, Value>) {
        let mut whole = Value::Object(std::mem::take(attributes));
        self.mask_value(&mut whole);
        if let Value::Object(masked) = whole {
            *attributes = masked;
        }
    }

    /// Masks them in all that a call gives back.
    pub(crate) fn mask_reply(&self, reply: &mut Result<crate::tool::Reply, CallError>) {
        if self.is_empty() {
            return;
        }
        match reply {
            Ok(reply) => {
                self.mask(&mut reply.text);
                reply.whole_text.iter_mut().for_each(|text| self.mask(text));
                reply.data.iter_mut().for_each(|data| self.mask_value(data));
                self.mask_content(&mut reply.content);
                reply.warnings.iter_mut().for_each(|warning| self.mask(warning));
                reply.error.iter_mut().for_each(|error| self.mask_error(error));
            }
            Err(error) => self.mask_error(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(url: &str) -> Target {
        Target::read(url).unwrap()
    }

    fn source(script: &str, hosts: &[&str]) -> SecretSource {
        let command = ["sh", "-c", script].map(str::to_owned).to_vec();
        SecretSource { command: Some(command), hosts: hosts.iter().map(|host| host.parse().unwrap()).collect() }
    }

    #[test]
    fn the_environment_speaks_before_the_store_and_the_store_before_programs() {
        let dir = tempfile::tempdir().unwrap();
        let vault = Vault::new(dir.path().join("s.json"), dir.path().join("k"), None);
        // A variable that cargo gives every test process.
        vault.set("CARGO_PKG_NAME", "kept", Vec::new(), 0).unwrap();
        vault.set("BOTH", "kept", vec!["api.test".parse().unwrap()], 0).unwrap();
        let sources = [("BOTH", source("echo told", &[])), ("ONE", source("echo told", &["*.one.test"]))];
        let sources = sources.map(|(name, source)| (name.to_owned(), source)).into();
        let secrets = Secrets::new(Some(vault.clone()), sources);
        let get = |name: &str| secrets.get(name).unwrap().map(|secret| secret.value().to_owned());
        assert_eq!(get("CARGO_PKG_NAME"), std::env::var("CARGO_PKG_NAME").ok());
        assert_eq!(get("BOTH").as_deref(), Some("kept"));
        assert_eq!(get("ONE").as_deref(), Some("told"));
        assert_eq!(get("NOBODY_HAS_THIS"), None);
        assert_eq!(get("PATH"), None, "what decides how programs run is no secret");
        vault.set("LATE", "later", Vec::new(), 0).unwrap();
        assert_eq!(get("LATE").as_deref(), Some("later"), "a change is seen");
        assert!(secrets.hosts("BOTH").unwrap().is_some() && secrets.hosts("CARGO_PKG_NAME").unwrap().is_none());
        std::fs::write(vault.file(), "broken").unwrap();
        assert!(secrets.get("BOTH").is_err() && secrets.get("NOBODY_HAS_THIS").is_err(), "and so is damage");
    }

    #[test]
    fn what_a_program_told_is_not_asked_for_again() {
        let dir = tempfile::tempdir().unwrap();
        let count = dir.path().join("count");
        let script = format!("echo x >> {}; echo told", count.display());
        let secrets = Secrets::new(None, [("ONE".to_owned(), source(&script, &[]))].into());
        for _ in 0..3 {
            assert_eq!(secrets.get("ONE").unwrap().unwrap().value(), "told");
        }
        assert_eq!(std::fs::read_to_string(count).unwrap(), "x\n");
    }

    #[test]
    fn it_goes_where_it_is_bound_to_and_nowhere_else() {
        let sources = [
            ("BOUND".to_owned(), source("echo told", &["api.test", "127.0.0.1:8080"])),
            ("LOOSE".to_owned(), source("echo told", &[])),
        ];
        let secrets = Secrets::new(None, sources.into());
        let refusal = |name: &str, url: &str, inside| secrets.refusal(name, &target(url), inside);
        assert_eq!(refusal("BOUND", "https://api.test/x", false), None);
        assert_eq!(refusal("BOUND", "http://127.0.0.1:8080/", true), None);
        for (name, url, why) in [
            ("BOUND", "https://evil.test/", "is bound to api.test, 127.0.0.1:8080"),
            ("BOUND", "https://api.test.evil.test/", "is not sent to"),
            ("BOUND", "http://api.test/", "without encryption"),
            ("LOOSE", "https://api.test/", "haft secret set LOOSE --host api.test"),
            ("NONE", "https://api.test/", "there is no secret `NONE`"),
        ] {
            let said = refusal(name, url, false).unwrap();
            assert!(said.contains(why), "{name} {url}: {said}");
        }
        let bound = secrets.get("BOUND").unwrap().unwrap();
        assert!(bound.may_go_to(&target("https://api.test/")).is_ok());
        assert!(bound.may_go_to(&target("https://evil.test/")).is_err());
        assert!(secrets.get("LOOSE").unwrap().unwrap().may_go_to(&target("https://evil.test/")).is_ok());
        assert_eq!(format!("{bound:?}"), "Secret(BOUND)");
    }

    #[test]
    fn a_name_is_written_like_a_variable() {
        for (name, good) in [
            ("A", true),
            ("_A1", true),
            ("a", false),
            ("", false),
            ("1A", false),
            ("A-B", false),
            ("_", false),
            ("PATH", false),
            ("HAFT_X", false),
            ("LD_PRELOAD", false),
        ] {
            assert_eq!(is_name(name), good, "{name}");
        }
        assert!(!is_name(&"A".repeat(129)));
    }
}
