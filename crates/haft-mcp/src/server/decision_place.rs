//! Where a person decides what waits: on the page of a gateway, if one runs, or on the command line.

use haft_core::CallId;
use haft_runtime::page_address;
use std::path::PathBuf;

/// Where a person decides what waits.
#[derive(Debug, Clone)]
pub enum DecisionPlace {
    /// On the page at this address, or on the command line.
    Page(String),
    /// On the command line, or on the page of a gateway that runs over this data directory.
    CommandLine(PathBuf),
    /// Where this sentence says.
    Elsewhere(String),
}

impl DecisionPlace {
    /// The page of a question, if there is a page now.
    fn page(&self, call: &CallId) -> Option<String> {
        let address = match self {
            Self::Page(address) => Some(address.clone()),
            Self::CommandLine(data_dir) => page_address::find(data_dir),
            Self::Elsewhere(_) => None,
        };
        address.map(|address| format!("{address}#/inbox/{call}"))
    }

    /// Where all of a question can be read, in a few words.
    pub(super) fn reference(&self, call: &CallId) -> String {
        self.page(call).unwrap_or_else(|| format!("haft approvals show {call}"))
    }

    /// What a model is told about a question that waits.
    pub(super) fn sentence(&self, call: &CallId) -> String {
        if let Self::Elsewhere(sentence) = self {
            return sentence.clone();
        }
        let page = match self.page(call) {
            Some(page) => format!("at {page} or "),
            None => String::new(),
        };
        format!(
            "A person decides {page}with `haft approvals approve {call}`. Approval runs the call; do not call the tool again."
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_is_named_only_while_one_runs() {
        let (dir, id) = (tempfile::tempdir().unwrap(), CallId::new(1, 2));
        let place = DecisionPlace::CommandLine(dir.path().to_owned());
        assert_eq!(place.reference(&id), format!("haft approvals show {id}"));
        let published = page_address::publish(dir.path(), "http://127.0.0.1:4747/").unwrap();
        assert_eq!(place.reference(&id), format!("http://127.0.0.1:4747/#/inbox/{id}"));
        assert!(place.sentence(&id).contains(&format!("at http://127.0.0.1:4747/#/inbox/{id} or with")));
        drop(published);
        assert_eq!(place.reference(&id), format!("haft approvals show {id}"));
    }
}
