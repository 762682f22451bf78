//! The token: made on first start, kept in a file that only its owner reads, compared without a clock to read.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// How many random bytes a token has: 256 bits.
const BYTES: usize = 32;
/// How long one is when it is written down.
const LENGTH: usize = 43;

/// What opens the gateway. It is not shown by `Debug`, and there is no `Display`.
#[derive(Clone)]
pub struct Token {
    text: String,
    digest: [u8; 32],
}

/// Why there is no token.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The file cannot be read or made.
    #[error("the token file {} cannot be used: {why}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        why: std::io::Error,
    },
    /// Somebody else may have read it.
    #[error("the token file {} can be read by others: delete it, and the next start makes a new one", .0.display())]
    Open(PathBuf),
    /// It holds no token.
    #[error("the token file {} holds no token: delete it, and the next start makes a new one", .0.display())]
    Malformed(PathBuf),
    /// The machine gives no random numbers.
    #[error("no token can be made: the machine gives no random numbers")]
    NoChance,
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(…)")
    }
}

impl Token {
    /// The token in this file, which is made if it is not there.
    pub fn load_or_make(path: &Path) -> Result<Self, TokenError> {
        match read(path) {
            Err(TokenError::File { why, .. }) if why.kind() == ErrorKind::NotFound => {}
            done => return done,
        }
        let token = Self::new(random(BYTES).ok_or(TokenError::NoChance)?);
        match keep(path, &token.text) {
            Ok(()) => Ok(token),
            // Another process was faster; its token counts.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => read(path),
            Err(why) => Err(TokenError::File { path: path.to_owned(), why }),
        }
    }

    fn new(text: String) -> Self {
        Self { digest: digest(&text), text }
    }

    /// The token itself, to be given to whoever may do everything.
    pub fn reveal(&self) -> &str {
        &self.text
    }

    /// Whether somebody said this token. How long that takes says nothing about it: hashes are compared, all of both.
    pub(crate) fn is(&self, said: &str) -> bool {
        same(&self.digest, &digest(said))
    }
}

/// What a secret is kept and looked up by.
pub(crate) fn digest(secret: &str) -> [u8; 32] {
    Sha256::digest(secret.as_bytes()).into()
}

fn same(one: &[u8; 32], other: &[u8; 32]) -> bool {
    one.iter().zip(other).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
}

/// So many random bytes, as text that fits into an address.
pub(crate) fn random(bytes: usize) -> Option<String> {
    let mut drawn = vec![0; bytes];
    getrandom::fill(&mut drawn).ok()?;
    Some(URL_SAFE_NO_PAD.encode(drawn))
}

fn read(path: &Path) -> Result<Token, TokenError> {
    let fail = |why| TokenError::File { path: path.to_owned(), why };
    let file = std::fs::File::open(path).map_err(fail)?;
    if file.metadata().map_err(fail)?.permissions().mode() & 0o077 != 0 {
        return Err(TokenError::Open(path.to_owned()));
    }
    let mut text = String::new();
    file.take(1024).read_to_string(&mut text).map_err(fail)?;
    let text = text.trim();
    let well_formed = text.len() == LENGTH && URL_SAFE_NO_PAD.decode(text).is_ok();
    if well_formed { Ok(Token::new(text.to_owned())) } else { Err(TokenError::Malformed(path.to_owned())) }
}

/// Writes the file so that it is whole and private whenever it is there at all, and never replaces one.
fn keep(path: &Path, text: &str) -> std::io::Result<()> {
    let mut half = path.as_os_str().to_owned();
    half.push(format!(".{}", std::process::id()));
    let half = PathBuf::from(half);
    let _ = std::fs::remove_file(&half);
    let written =
        std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&half).and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            file.sync_all()
        });
    let linked = written.and_then(|()| std::fs::hard_link(&half, path));
    let _ = std::fs::remove_file(&half);
    linked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_made_once_private_and_found_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("gateway-token");
        let made = Token::load_or_make(&path).unwrap();
        assert_eq!(made.reveal().len(), LENGTH);
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(Token::load_or_make(&path).unwrap().reveal(), made.reveal());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "nothing half-made is left");
        assert!(made.is(made.reveal()) && !made.is("") && !made.is(&made.reveal()[1..]));
        assert_eq!(format!("{made:?}"), "Token(…)");
    }

    #[test]
    fn a_file_that_others_read_or_that_holds_something_else_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("gateway-token");
        Token::load_or_make(&path).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(matches!(Token::load_or_make(&path), Err(TokenError::Open(_))));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        std::fs::write(&path, "secret").unwrap();
        assert!(matches!(Token::load_or_make(&path), Err(TokenError::Malformed(_))));
    }
}
