//! The encrypted store of secrets: one file, sealed as a whole, so that neither names nor values nor where they may be
//! sent can be read or changed by whoever gets hold of it.
//!
//! ChaCha20-Poly1305 under a key that is either random and lies in the user's configuration directory, or is made of a
//! passphrase. What does not open is an error, never an empty store.

use super::{NAME_RULE, is_name, value};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use haft_core::host::HostRule;
use haft_core::{CallError, ErrorKind};
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::pbkdf2;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::num::NonZeroU32;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// How often a passphrase is worked through.
const ROUNDS: NonZeroU32 = NonZeroU32::new(600_000).unwrap();
/// More than this is no store of ours.
const ROUNDS_MAX: u32 = 10_000_000;
const FILE_MAX: u64 = 16 << 20;
/// How many secrets are kept.
const ENTRIES_MAX: usize = 1000;
const KEY_LEN: usize = 32;
const FORMAT: &str = "haft secrets 1";

/// Where secrets are kept, and what opens it.
#[derive(Clone)]
pub struct Vault {
    file: PathBuf,
    key: PathBuf,
    passphrase: Option<String>,
}

impl std::fmt::Debug for Vault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Vault({})", self.file.display())
    }
}

/// What is kept of one secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// The value.
    pub(super) value: String,
    /// The hosts that it may be sent to by reference.
    #[serde(default)]
    pub hosts: Vec<HostRule>,
    /// When it was set, in milliseconds of the Unix epoch.
    #[serde(default)]
    pub at_ms: i64,
}

impl std::fmt::Debug for Kept {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kept").field("hosts", &self.hosts).finish_non_exhaustive()
    }
}

impl Kept {
    /// The value, for the person whose it is.
    pub fn reveal(&self) -> &str {
        &self.value
    }
}

type Entries = BTreeMap<String, Kept>;

/// The file. Everything but `content` is also sealed in, so that it cannot be exchanged.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sealed {
    format: String,
    key: KeyKind,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    salt: String,
    #[serde(default, skip_serializing_if = "is_zero")]
    rounds: u32,
    nonce: String,
    content: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes it so")]
fn is_zero(rounds: &u32) -> bool {
    *rounds == 0
}

/// What opens it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum KeyKind {
    /// A key in a file.
    File,
    /// A passphrase.
    Passphrase,
}

impl Vault {
    /// A store in `file`, opened by the key in `key` or, if one is given, by a passphrase.
    pub fn new(file: impl Into<PathBuf>, key: impl Into<PathBuf>, passphrase: Option<String>) -> Self {
        let passphrase = passphrase.filter(|phrase| !phrase.is_empty());
        Self { file: file.into(), key: key.into(), passphrase }
    }

    /// Where it is.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// All that is kept, by name.
    pub fn all(&self) -> Result<BTreeMap<String, Kept>, CallError> {
        match self.read()? {
            Some(sealed) => self.opened(&sealed).map(|(entries, _)| entries),
            None => Ok(Entries::new()),
        }
    }

    /// Keeps a secret. Returns whether another was kept under that name.
    pub fn set(&self, name: &str, text: &str, hosts: Vec<HostRule>, now_ms: i64) -> Result<bool, CallError> {
        if !is_name(name) {
            return Err(CallError::invalid(format!("`{}` is no name for a secret", haft_core::preview::inert(name)))
                .hint(NAME_RULE));
        }
        let kept = Kept { value: value(name, text)?, hosts, at_ms: now_ms };
        self.change(|entries| {
            if entries.len() >= ENTRIES_MAX && !entries.contains_key(name) {
                return Err(CallError::invalid(format!("{ENTRIES_MAX} secrets are kept already")));
            }
            Ok(entries.insert(name.to_owned(), kept).is_some())
        })
    }

    /// Forgets a secret. Returns whether there was one.
    pub fn remove(&self, name: &str) -> Result<bool, CallError> {
        self.change(|entries| Ok(entries.remove(name).is_some()))
    }

    /// Changes what is kept, while nobody else does.
    fn change<T>(&self, work: impl FnOnce(&mut Entries) -> Result<T, CallError>) -> Result<T, CallError> {
        let dir = self.file.parent().unwrap_or_else(|| Path::new("."));
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir);
        made.map_err(|error| self.trouble(&error))?;
        let mut options = OpenOptions::new();
        let lock = options.create(true).truncate(false).write(true).mode(0o600).open(self.file.with_extension("lock"));
        let lock = lock.map_err(|error| self.trouble(&error))?;
        lock.lock().map_err(|error| self.trouble(&error))?;
        let (mut entries, lid) = match self.read()? {
            Some(sealed) => self.opened(&sealed)?,
            None => (Entries::new(), self.new_lid()?),
        };
        let done = work(&mut entries)?;
        self.write(&seal(&entries, &lid)?)?;
        Ok(done)
    }

    fn read(&self) -> Result<Option<Sealed>, CallError> {
        let file = match File::open(&self.file) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(self.trouble(&error)),
        };
        let mut text = String::new();
        let read = file.take(FILE_MAX + 1).read_to_string(&mut text);
        let whole = read.is_ok_and(|bytes| bytes as u64 <= FILE_MAX);
        let sealed: Option<Sealed> = if whole { serde_json::from_str(&text).ok() } else { None };
        match sealed.filter(|sealed| sealed.format == FORMAT) {
            Some(sealed) => Ok(Some(sealed)),
            None => Err(self.damaged()),
        }
    }

    fn opened(&self, sealed: &Sealed) -> Result<(Entries, Lid), CallError> {
        let bytes = |text: &str| STANDARD.decode(text).map_err(|_| self.damaged());
        let lid = self.lid_of(sealed)?;
        let nonce: [u8; NONCE_LEN] = bytes(&sealed.nonce)?.try_into().map_err(|_| self.damaged())?;
        let mut content = bytes(&sealed.content)?;
        let opened =
            lid.key()?.open_in_place(Nonce::assume_unique_for_key(nonce), Aad::from(lid.label()), &mut content);
        let Ok(opened) = opened else { return Err(self.shut(lid.kind)) };
        let entries = serde_json::from_slice(opened).map_err(|_| self.damaged())?;
        Ok((entries, lid))
    }

    /// What opens a file that is there.
    fn lid_of(&self, sealed: &Sealed) -> Result<Lid, CallError> {
        match (sealed.key, &self.passphrase) {
            (KeyKind::File, _) => Ok(Lid::of_file(self.key_file()?.ok_or_else(|| self.keyless())?)),
            (KeyKind::Passphrase, None) => Err(CallError::new(
                ErrorKind::Denied,
                "the secrets are locked by a passphrase, and HAFT_SECRET_PASSPHRASE is not set",
            )
            .hint("set HAFT_SECRET_PASSPHRASE in haft's environment")),
            (KeyKind::Passphrase, Some(phrase)) => {
                let salt = STANDARD.decode(&sealed.salt).map_err(|_| self.damaged())?;
                let rounds = NonZeroU32::new(sealed.rounds).filter(|rounds| *rounds >= ROUNDS);
                let rounds = rounds.filter(|rounds| rounds.get() <= ROUNDS_MAX).ok_or_else(|| self.damaged())?;
                Ok(Lid::of_phrase(phrase, salt, rounds))
            }
        }
    }

    /// What opens a file that is to be made: a passphrase if there is one, else a key, which is made if need be.
    fn new_lid(&self) -> Result<Lid, CallError> {
        if let Some(phrase) = &self.passphrase {
            return Ok(Lid::of_phrase(phrase, random::<16>()?.to_vec(), ROUNDS));
        }
        if let Some(key) = self.key_file()? {
            return Ok(Lid::of_file(key));
        }
        let key = random::<KEY_LEN>()?;
        let fail = |error: std::io::Error| self.unkept_key(&error);
        if let Some(dir) = self.key.parent() {
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(fail)?;
        }
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&self.key).map_err(fail)?;
        file.write_all(format!("{}\n", STANDARD.encode(key)).as_bytes())
            .and_then(|()| file.sync_all())
            .map_err(fail)?;
        Ok(Lid::of_file(key))
    }

    /// The key in its file; none if there is no such file.
    fn key_file(&self) -> Result<Option<[u8; KEY_LEN]>, CallError> {
        let file = match File::open(&self.key) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(self.unkept_key(&error)),
        };
        let mode = file.metadata().map_err(|error| self.unkept_key(&error))?.permissions().mode();
        if mode & 0o077 != 0 {
            let message = format!("others may read {}, which opens the secrets", self.key.display());
            return Err(
                CallError::new(ErrorKind::Denied, message).hint(format!("run `chmod 600 {}`", self.key.display()))
            );
        }
        let mut text = String::new();
        let read = file.take(1024).read_to_string(&mut text);
        let key = read.ok().and_then(|_| STANDARD.decode(text.trim()).ok()).and_then(|bytes| bytes.try_into().ok());
        key.map(Some).ok_or_else(|| CallError::failed(format!("{} holds no key", self.key.display())))
    }

    /// Puts a new file in the place of the old one, all at once.
    fn write(&self, sealed: &Sealed) -> Result<(), CallError> {
        let fail = |error: std::io::Error| self.trouble(&error);
        let text = serde_json::to_string_pretty(sealed).map_err(|error| CallError::internal(error.to_string()))?;
        let beside = self.file.with_extension(format!("{:016x}.new", crate::chance()));
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside).map_err(fail)?;
        let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
        let placed = written.and_then(|()| std::fs::rename(&beside, &self.file));
        if placed.is_err() {
            let _ = std::fs::remove_file(&beside);
        }
        placed.map_err(fail)?;
        let dir = self.file.parent().and_then(|dir| File::open(dir).ok());
        // The name has to last as well; where directories cannot be synced it lasts by itself.
        let _ = dir.map(|dir| dir.sync_all());
        Ok(())
    }

    fn trouble(&self, error: &std::io::Error) -> CallError {
        CallError::failed(format!("the secrets in {} cannot be used: {error}", self.file.display()))
    }

    fn unkept_key(&self, error: &std::io::Error) -> CallError {
        CallError::failed(format!("the key in {} cannot be used: {error}", self.key.display()))
    }

    fn keyless(&self) -> CallError {
        CallError::new(ErrorKind::Denied, format!("{} is gone, and nothing else opens the secrets", self.key.display()))
            .hint(format!("bring it back, or remove {} and set the secrets anew", self.file.display()))
    }

    fn damaged(&self) -> CallError {
        CallError::failed(format!("{} is not a store of secrets, or is damaged", self.file.display()))
            .hint("bring back a copy of it, or remove it and set the secrets anew")
    }

    fn shut(&self, kind: KeyKind) -> CallError {
        let which = match kind {
            KeyKind::File => format!("the key in {}", self.key.display()),
            KeyKind::Passphrase => "the passphrase in HAFT_SECRET_PASSPHRASE".to_owned(),
        };
        let message =
            format!("{} does not open with {which}: it is another one, or the file was changed", self.file.display());
        CallError::new(ErrorKind::Denied, message)
    }
}

/// A key, and how it came about.
struct Lid {
    kind: KeyKind,
    key: [u8; KEY_LEN],
    salt: Vec<u8>,
    rounds: u32,
}

impl Lid {
    fn of_file(key: [u8; KEY_LEN]) -> Self {
        Self { kind: KeyKind::File, key, salt: Vec::new(), rounds: 0 }
    }

    fn of_phrase(phrase: &str, salt: Vec<u8>, rounds: NonZeroU32) -> Self {
        let mut key = [0; KEY_LEN];
        pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, rounds, &salt, phrase.as_bytes(), &mut key);
        Self { kind: KeyKind::Passphrase, key, salt, rounds: rounds.get() }
    }

    fn key(&self) -> Result<LessSafeKey, CallError> {
        let key = UnboundKey::new(&CHACHA20_POLY1305, &self.key);
        key.map(LessSafeKey::new).map_err(|_| CallError::internal("a key has the wrong length"))
    }

    /// What is sealed in besides the content.
    fn label(&self) -> Vec<u8> {
        format!("{FORMAT} {:?} {} {}", self.kind, STANDARD.encode(&self.salt), self.rounds).into_bytes()
    }
}

fn seal(entries: &Entries, lid: &Lid) -> Result<Sealed, CallError> {
    let mut content = serde_json::to_vec(entries).map_err(|error| CallError::internal(error.to_string()))?;
    let nonce = random::<NONCE_LEN>()?;
    let aad = Aad::from(lid.label());
    let sealed = lid.key()?.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), aad, &mut content);
    sealed.map_err(|_| CallError::internal("the secrets could not be sealed"))?;
    Ok(Sealed {
        format: FORMAT.to_owned(),
        key: lid.kind,
        salt: STANDARD.encode(&lid.salt),
        rounds: lid.rounds,
        nonce: STANDARD.encode(nonce),
        content: STANDARD.encode(content),
    })
}

fn random<const N: usize>() -> Result<[u8; N], CallError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| CallError::internal(format!("there is no randomness: {error}")))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vault(dir: &Path, phrase: Option<&str>) -> Vault {
        Vault::new(dir.join("data/secrets.json"), dir.join("config/secret.key"), phrase.map(str::to_owned))
    }

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn what_is_kept_comes_back_and_is_nowhere_in_clear() {
        let dir = tempfile::tempdir().unwrap();
        let kept = vault(dir.path(), None);
        assert!(kept.all().unwrap().is_empty() && !kept.file().exists(), "looking makes nothing");
        assert!(!kept.set("API_KEY", "hunter2hunter2\n", vec!["api.test".parse().unwrap()], 7).unwrap());
        assert!(kept.set("API_KEY", "hunter3hunter3", Vec::new(), 8).unwrap(), "another was there");
        kept.set("OTHER", "value", Vec::new(), 9).unwrap();
        let all = vault(dir.path(), None).all().unwrap();
        assert_eq!(all.keys().collect::<Vec<_>>(), ["API_KEY", "OTHER"]);
        assert_eq!((all["API_KEY"].reveal(), all["API_KEY"].at_ms), ("hunter3hunter3", 8));
        assert!(!format!("{all:?}{kept:?}").contains("hunter"), "{all:?}");
        let text = std::fs::read_to_string(kept.file()).unwrap();
        assert!(!text.contains("API_KEY") && !text.contains("hunter"), "{text}");
        assert_eq!((mode(kept.file()), mode(&kept.key)), (0o600, 0o600));
        assert!(kept.remove("OTHER").unwrap() && !kept.remove("OTHER").unwrap());
        let left: Vec<_> = std::fs::read_dir(dir.path().join("data")).unwrap().flatten().collect();
        assert_eq!(left.len(), 2, "the store and its lock: {left:?}");
    }

    #[test]
    fn bad_names_and_values_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let kept = vault(dir.path(), None);
        for (name, text) in
            [("", "x"), ("a b", "x"), ("lower", "x"), ("A=B", "x"), ("A", ""), ("A", "\n"), ("A", "x\0y")]
        {
            assert!(kept.set(name, text, Vec::new(), 0).is_err(), "{name:?} {text:?}");
        }
        assert!(kept.set("A", &"x".repeat((64 << 10) + 1), Vec::new(), 0).is_err());
        assert!(kept.set("A", &"x".repeat(64 << 10), Vec::new(), 0).is_ok());
    }

    #[test]
    fn another_key_a_changed_byte_and_a_changed_head_do_not_open() {
        let dir = tempfile::tempdir().unwrap();
        let kept = vault(dir.path(), None);
        kept.set("API_KEY", "hunter2hunter2", Vec::new(), 0).unwrap();
        let good = std::fs::read_to_string(kept.file()).unwrap();
        let parsed: serde_json::Value = serde_json::from_str(&good).unwrap();
        let flipped = |field: &str| {
            let mut value = parsed.clone();
            let mut bytes = STANDARD.decode(value[field].as_str().unwrap()).unwrap();
            bytes[0] ^= 1;
            value[field] = STANDARD.encode(bytes).into();
            value.to_string()
        };
        for text in [flipped("content"), flipped("nonce"), "{}".to_owned(), String::new(), "x".repeat(100)] {
            std::fs::write(kept.file(), &text).unwrap();
            assert!(kept.all().is_err() && kept.set("B", "x", Vec::new(), 0).is_err(), "{text}");
            assert_eq!(std::fs::read_to_string(kept.file()).unwrap(), text, "and is left as it is");
        }
        std::fs::write(kept.file(), &good).unwrap();
        std::fs::write(&kept.key, format!("{}\n", STANDARD.encode([1; KEY_LEN]))).unwrap();
        let error = kept.all().unwrap_err();
        assert!(error.message.contains("does not open") && !error.message.contains("hunter"), "{}", error.message);
        std::fs::remove_file(&kept.key).unwrap();
        assert!(kept.all().unwrap_err().message.contains("is gone"));
    }

    #[test]
    fn a_key_that_others_may_read_opens_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let kept = vault(dir.path(), None);
        kept.set("A", "value", Vec::new(), 0).unwrap();
        std::fs::set_permissions(&kept.key, std::fs::Permissions::from_mode(0o640)).unwrap();
        let error = kept.all().unwrap_err();
        assert!(error.hint.unwrap().contains("chmod 600"), "{}", error.message);
    }

    #[test]
    fn a_passphrase_opens_what_it_locked() {
        let dir = tempfile::tempdir().unwrap();
        let kept = vault(dir.path(), Some("correct horse"));
        kept.set("A", "value", Vec::new(), 0).unwrap();
        assert!(!kept.key.exists(), "no key lies about");
        assert_eq!(vault(dir.path(), Some("correct horse")).all().unwrap()["A"].reveal(), "value");
        assert!(vault(dir.path(), Some("battery staple")).all().unwrap_err().message.contains("does not open"));
        assert!(vault(dir.path(), None).all().unwrap_err().message.contains("HAFT_SECRET_PASSPHRASE"));
        let text = std::fs::read_to_string(kept.file()).unwrap().replace("600000", "1");
        std::fs::write(kept.file(), text).unwrap();
        assert!(kept.all().is_err(), "fewer rounds are not believed");
    }
}
