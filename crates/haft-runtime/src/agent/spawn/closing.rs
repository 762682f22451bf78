//! What is left of a child that has ended: its copy of the project, as long as something in it is nowhere else.

use super::super::tree::Tree;
use super::{Changed, DIFF_MAX, REST, Report};
use crate::halt::Halt;
use crate::pipeline::Haft;
use haft_core::{CallError, ErrorKind, SessionId};
use haft_store::Store;
use std::sync::Arc;

/// Whether calls of a child wait for somebody to decide. They would happen where it worked.
pub(crate) async fn is_awaited(store: &Store, session: &SessionId) -> Result<bool, CallError> {
    let waiting = store.approvals(true).await.map_err(crate::store_error)?;
    Ok(waiting.iter().any(|approval| approval.session.as_deref() == Some(session.as_str())))
}

/// What a child did to its copy of the project. A copy in which nothing changed goes, unless something may still happen there.
pub(super) async fn close_tree(tree: Tree, (haft, session): (&Haft, &SessionId), report: &mut Report) {
    let own = Halt::new();
    // Where that cannot be known, it may be.
    let awaited = is_awaited(&haft.store, session).await.unwrap_or(true);
    if awaited {
        report.warnings.push("calls of it wait for somebody to decide; its worktree stays until then".to_owned());
    }
    // Somebody else may go on with it.
    let taken = report.error.as_ref().is_some_and(|error| error.kind == ErrorKind::Conflict);
    let (desk, session) = (Arc::clone(&haft.desk), session.clone());
    let look = move || {
        // What runs in the background was asked to end; what it changed is there when it has.
        let still = !desk.rests(&session, REST);
        let project = tree.project()?;
        let merge = tree.changes(&project, &own);
        let (changes, left) = match merge {
            Ok(merge) => (merge.changes, merge.left),
            Err(error) => return Ok((tree, None, String::new(), vec![error.message])),
        };
        if changes.is_empty() && left.is_empty() && !awaited && !still && !taken {
            tree.discard()?;
        }
        let files: Vec<String> = changes.iter().map(|change| project.shown(change.path())).collect();
        let diff = crate::diff(&changes, &|path| project.shown(path));
        let still = still.then(|| "something that it started still runs in its worktree".to_owned());
        let left = left.into_iter().map(|left| format!("not carried over: {left}")).chain(still).collect();
        Ok((tree, Some(files), cut_text(&diff), left))
    };
    // Also if it was stopped: what it did until then is there.
    let seen = crate::tool::off_thread(Halt::new(), look).await;
    match seen {
        Ok((tree, files, diff, warnings)) => {
            report.warnings.extend(warnings);
            let (path, branch) = (tree.root().display().to_string(), tree.branch().to_owned());
            report.worktree = Some(Changed { path, branch, files, diff });
        }
        Err(error) => report.warnings.push(error.message),
    }
}

fn cut_text(text: &str) -> String {
    if text.len() <= DIFF_MAX {
        return text.to_owned();
    }
    format!("{}\n… {} more bytes", &text[..text.floor_char_boundary(DIFF_MAX)], text.len() - DIFF_MAX)
}
