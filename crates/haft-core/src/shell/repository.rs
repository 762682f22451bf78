//! Whether a repository's own configuration can make git run, fetch or write something while it only reads.
//! A repository can come from anywhere, so what is not known to be inert is taken to do so.

/// Sections of which every key is inert for commands that read.
const INERT: &[&str] = &[
    "remote",
    "branch",
    "user",
    "init",
    "push",
    "pull",
    "merge",
    "rebase",
    "rerere",
    "color",
    "gui",
    "commit",
    "tag",
    "gc",
    "maintenance",
    "index",
    "pack",
    "lfs",
    "credential",
    "http",
    "https",
    "url",
    "safe",
    "receive",
    "advice",
    "stash",
    "worktree",
    "versionsort",
    "column",
    "submodule",
    "transfer",
    "fetch",
    "author",
    "committer",
    "sendemail",
    "github",
    "gitlab",
];
/// Keys of other sections that are.
const INERT_KEYS: &[&str] = &[
    "core.repositoryformatversion",
    "core.filemode",
    "core.bare",
    "core.logallrefupdates",
    "core.ignorecase",
    "core.precomposeunicode",
    "core.symlinks",
    "core.autocrlf",
    "core.eol",
    "core.safecrlf",
    "core.quotepath",
    "core.abbrev",
    "core.compression",
    "core.longpaths",
    "core.untrackedcache",
    "core.preloadindex",
    "core.sparsecheckout",
    "core.sparsecheckoutcone",
    "core.commentchar",
    "core.whitespace",
    "core.checkstat",
    "core.trustctime",
    "core.sharedrepository",
    "core.bigfilethreshold",
    "core.multipackindex",
    "core.commitgraph",
    "extensions.objectformat",
    "extensions.worktreeconfig",
    "extensions.refstorage",
    "extensions.noop",
    "extensions.preciousobjects",
    "extensions.relativeworktrees",
    "diff.algorithm",
    "diff.renames",
    "diff.renamelimit",
    "diff.mnemonicprefix",
    "diff.noprefix",
    "diff.colormoved",
    "diff.context",
    "diff.indentheuristic",
    "diff.wserrorhighlight",
    "log.date",
    "log.decorate",
    "log.abbrevcommit",
    "log.follow",
    "log.mailmap",
    "status.short",
    "status.branch",
    "status.showuntrackedfiles",
    "status.relativepaths",
    "status.renames",
    "grep.linenumber",
    "grep.patterntype",
    "grep.extendedregexp",
    "blame.date",
    "blame.showemail",
    "feature.manyfiles",
];
/// Keys of inert sections that are not: objects that are missing are fetched from a promisor.
const LIVE_KEYS: &[&str] = &["promisor", "partialclonefilter"];

/// Why reading in a repository with this configuration may do more than read.
pub fn unsettled(config: &str) -> Option<String> {
    let mut section = String::new();
    for line in config.lines() {
        let mut rest = line.trim();
        while let Some(after) = rest.strip_prefix('[') {
            let Some(end) = heading_end(after) else { return Some("its configuration is not understood".to_owned()) };
            section = after[..end].trim().to_lowercase();
            rest = after[end + 1..].trim();
        }
        if rest.is_empty() || rest.starts_with(['#', ';']) {
            continue;
        }
        let (key, value) = rest.split_once('=').map_or((rest, "true"), |(key, value)| (key.trim(), value.trim()));
        if value.ends_with('\\') {
            return Some("its configuration is not understood".to_owned());
        }
        let key = key.split(['#', ';']).next().unwrap_or_default().trim().to_lowercase();
        let family = section.split([' ', '"', '.', '\t']).next().unwrap_or_default();
        let plain = !section.contains(['"', '.']);
        let name = format!("{family}.{key}");
        let off = name == "core.fsmonitor" && matches!(value, "false" | "0" | "no" | "off");
        let inert = (INERT.contains(&family) && !LIVE_KEYS.contains(&key.as_str()))
            || (plain && INERT_KEYS.contains(&name.as_str()))
            || (plain && off);
        if !inert {
            return Some(format!("its git configuration sets {}", super::cut(&format!("{section}.{key}"))));
        }
    }
    None
}

/// Where a heading ends, past a quoted name with brackets in it.
fn heading_end(text: &str) -> Option<usize> {
    let (mut quoted, mut escaped) = (false, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => quoted = !quoted,
            ']' if !quoted => return Some(at),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::unsettled;

    #[test]
    fn only_what_is_known_to_be_inert_is_plain() {
        for plain in [
            "",
            "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n",
            "[remote \"origin\"]\n\turl = git@example.com:a/b.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n",
            "[branch \"a]b\"]\n\tremote = origin\n",
            "# x\n; y\n[user]\nname = A\n",
            "[core] fsmonitor = false",
        ] {
            assert_eq!(unsettled(plain), None, "{plain}");
        }
        for live in [
            "[core]\n\tfsmonitor = ./x",
            "[user][core]\n\tfsmonitor = ./x",
            "[core] fsmonitor",
            "[core]\n\tfsmonitor = true",
            "[diff]\n\texternal = x",
            "[diff \"a\"]\n\ttextconv = x",
            "[diff.a]\n\tcommand = x",
            "[filter \"a\"]\n\tclean = x",
            "[include]\n\tpath = x",
            "[includeIf \"gitdir:/\"]\n\tpath = x",
            "[pager]\n\tlog = x",
            "[remote \"o\"]\n\tpromisor = true",
            "[CORE]\n\tFSMONITOR = x",
            "[core]\n\tbare = \\\nfalse",
            "[core",
            "[core]\n\tworktree = /",
            "[gpg]\n\tprogram = x",
            "[log]\n\tshowSignature = true",
        ] {
            assert!(unsettled(live).is_some(), "{live}");
        }
    }
}
