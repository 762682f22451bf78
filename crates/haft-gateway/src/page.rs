//! The page, as it lies in `page/`: part of this program, so that it needs neither a build nor a network.

use axum::extract::Path;
use axum::response::{IntoResponse, Response};
use haft_core::record::Digest;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use std::sync::OnceLock;

/// A file of the page.
struct Asset {
    name: &'static str,
    content: &'static [u8],
    /// Made when somebody first asks.
    tag: OnceLock<String>,
}

macro_rules! assets {
    ($($name:literal)*) => {
        [$(Asset { name: $name, content: include_bytes!(concat!("../page/", $name)), tag: OnceLock::new() }),*]
    };
}

static ASSETS: [Asset; 35] = assets! {
    "activity.js" "api.js" "approval.js" "asked.js" "call.js" "command.js" "decide.js" "diff.js" "dom.js" "editor.js" "events.js"
    "form.js" "graph.js" "icon.svg" "inbox.js" "index.html" "keys.js" "link.js" "list.js" "log.js" "main.js" "notice.js"
    "notify.js" "outcome.js" "question.js" "run.js" "save.js" "session.js" "settings.js" "single.js" "style.css"
    "text.js" "tools.js" "value.js" "work.js"
};

/// `GET /`.
pub(crate) async fn index(headers: HeaderMap) -> Response {
    answer("index.html", &headers)
}

/// `GET /static/NAME`.
pub(crate) async fn asset(Path(name): Path<String>, headers: HeaderMap) -> Response {
    answer(&name, &headers)
}

fn answer(name: &str, headers: &HeaderMap) -> Response {
    let Some(asset) = ASSETS.iter().find(|asset| asset.name == name) else {
        return crate::problem::Problem::not_found("the page has no such file").into_response();
    };
    let tag = asset.tag.get_or_init(|| format!("\"{}\"", Digest::of(asset.content)));
    let known = headers.get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok());
    let same = known.is_some_and(|known| known.split(',').any(|one| one.trim().trim_start_matches("W/") == tag));
    let mut response = if same {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        ([(header::CONTENT_TYPE, media_type(name))], asset.content).into_response()
    };
    if let Ok(tag) = HeaderValue::from_str(tag) {
        response.headers_mut().insert(header::ETAG, tag);
    }
    response
}

fn media_type(name: &str) -> &'static str {
    match name.rsplit_once('.').map(|(_, ending)| ending) {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_file_of_the_page_is_served() {
        let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("page");
        let files: BTreeSet<String> =
            std::fs::read_dir(dir).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
        let served: BTreeSet<String> = ASSETS.iter().map(|asset| asset.name.to_owned()).collect();
        assert_eq!(served, files);
        for asset in &ASSETS {
            assert_ne!(media_type(asset.name), "application/octet-stream", "{}", asset.name);
        }
    }
}
