//! One place makes HTTP clients. Whoever made one elsewhere would speak to the world by rules of their own.

use super::scan;
use super::{Finding, Tree};

/// Where they are made.
const MAKER: &str = "crates/haft-runtime/src/http.rs";

/// What makes one.
const MAKES: &[&str] =
    &["Client::builder", "ClientBuilder", "Client::new", "Client::default", "reqwest::get", "reqwest::blocking"];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let others = tree.rust().filter(|(path, _)| path.starts_with("crates") && path.as_os_str() != MAKER);
    others
        .flat_map(|(path, text)| made(text).into_iter().map(move |(line, said)| Finding::new(path, line, said)))
        .collect()
}

/// Only code counts, and only of a file that names the library or what is handed out of it.
fn made(text: &str) -> Vec<(usize, String)> {
    let code = scan::parts(text).code;
    let knows = code.contains("reqwest") || code.contains("http::{") || code.contains("http::Client");
    // A longer word that ends in the same is another.
    let whole = |at: usize| !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
    let found = MAKES.iter().filter(|_| knows).flat_map(|word| code.match_indices(word)).filter(|(at, _)| whole(*at));
    found
        .map(|(at, word)| (scan::line_at(&code, at), format!("`{word}` makes a client; ask {MAKER} for one")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_of_ones_own_is_found() {
        let text = "use reqwest::Client;\n// reqwest::get\nlet a = Client::builder();\nlet b = \"reqwest::get\";\nreqwest::get(c);\n";
        let mut lines: Vec<usize> = made(text).into_iter().map(|(line, _)| line).collect();
        lines.sort_unstable();
        assert_eq!(lines, [3, 5]);
        assert_eq!(made("use haft_runtime::http::Client;\nlet a = Client::new();\n").len(), 1);
        assert!(made("struct Client;\nlet a = Client::new();\n").is_empty(), "somebody else's word");
        assert!(made("use reqwest::Client;\nAuthClient::new(client);\n").is_empty(), "another word");
    }
}
