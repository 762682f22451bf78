//! What is pinned, shown and kept when a tool is accepted.

use super::*;

#[test]
fn a_link_that_leads_out_is_what_it_says_and_is_not_opened() {
    let place = Place::new();
    place.tool(HAFT, "linked", "Linked.");
    place.write("private/key", "TOPSECRET");
    place.write("private/other", "TOPSECRET");
    place.write("project/inside.txt", "inside");
    let link = |target: &str, name: &str| {
        let path = place.path(&format!("project/.haft/tools/linked/{name}"));
        let _ = std::fs::remove_file(&path);
        std::os::unix::fs::symlink(place.path(target), path).unwrap();
    };
    link("private/key", "out");
    link("project/inside.txt", "in");
    let offers = place.runtime.block_on(place.shelf.single("linked")).unwrap();
    let said: Vec<&str> = offers[0].pages.iter().filter_map(|page| page.text.as_deref()).collect();
    assert_eq!(said.len(), 2);
    assert!(said.iter().all(|text| text.starts_with("link to ") && !text.contains("TOPSECRET")), "{said:?}");
    assert!(said.iter().any(|text| text.ends_with("inside")), "{said:?}");
    place.accept("linked");
    place.write("private/key", "another");
    assert_eq!(place.barred("linked"), None, "it is not the tool's");
    link("private/other", "out");
    assert!(place.barred("linked").unwrap().contains("`.haft/tools/linked/out` changed"));
    link("private/key", "out");
    place.write("project/inside.txt", "other");
    assert!(place.barred("linked").unwrap().contains("`.haft/tools/linked/in` changed"));
}

#[test]
fn what_is_outside_is_pinned_and_neither_shown_nor_kept() {
    let place = Place::new();
    let text = command("run", "../lib/tool.sh").replace("read: []", "read: [../lib]");
    place.write("project/.haft/tools/run/tool.yml", &text);
    place.write("lib/tool.sh", "#!/bin/sh\n");
    let name = place.path("lib/tool.sh").canonicalize().unwrap().display().to_string();
    let offers = place.runtime.block_on(place.shelf.single("run")).unwrap();
    assert_eq!(offers[0].files, std::slice::from_ref(&name));
    assert!(offers[0].pages[0].is_outside() && offers[0].pages[0].text.is_none());
    place.accept("run");
    assert_eq!(place.barred("run"), None);
    place.write("lib/tool.sh", "#!/bin/sh\nevil\n");
    assert!(place.barred("run").unwrap().contains(&format!("`{name}` changed")));
}

#[test]
fn the_last_look_reads_what_a_mapping_has_changed() {
    use super::super::digests::{Known, Look};
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("x");
    std::fs::write(&file, "good").unwrap();
    // What is remembered of the file says something else of it than it holds, as it does after a write through a mapping.
    let stamp = crate::file_stamp::FileStamp::from(&file.metadata().unwrap());
    let other = haft_core::record::Digest::of(b"other");
    let mut known = Known::from([(file.clone(), (stamp, other))]);
    assert_eq!(Look::comparing(dir.path(), &mut known).take(&file, "x").unwrap(), other);
    let good = haft_core::record::Digest::of(b"good");
    assert_eq!(Look::reading(dir.path(), &mut known).take(&file, "x").unwrap(), good);
    assert_eq!(Look::showing(dir.path(), &mut known).take(&file, "x").unwrap(), good);
}

#[test]
fn the_texts_of_what_did_not_change_are_kept_as_well() {
    let place = Place::new();
    place.tool(HAFT, "two", "Two.");
    for (name, text) in [("a.sh", "a one\n"), ("b.sh", "b one\n"), ("a.sh", "a two\n"), ("b.sh", "b two\n")] {
        place.write(&format!("project/.haft/tools/two/{name}"), text);
        let offers = place.runtime.block_on(place.shelf.single("two")).unwrap();
        if text.contains("two") {
            let diff = offers[0].pages[0].diff.clone().unwrap_or_default();
            assert!(diff.contains("one") && diff.contains("two"), "{name}: {diff:?}");
            assert_eq!((offers[0].pages.len(), offers[0].whole_text()), (1, None));
        }
        place.runtime.block_on(place.shelf.accept_as_shown(offers)).unwrap();
    }
    // Without the text that was accepted, there is no difference to be shown: then it is shown whole.
    let forgotten = vec![("two".to_owned(), serde_json::Value::Null)];
    place.runtime.block_on(place.shelf.store.keep_pin_texts(&place.shelf.server(), forgotten)).unwrap();
    place.tool(HAFT, "two", "Changed.");
    let offers = place.runtime.block_on(place.shelf.single("two")).unwrap();
    assert!(offers[0].diff.is_none() && offers[0].whole_text().unwrap().contains("Changed."));
}

#[test]
fn a_proposal_is_accepted_as_it_was_shown_and_not_otherwise() {
    use haft_core::record::Digest;
    let place = Place::new();
    let text = command("agt", "sh").replace("{entrypoint: sh}", "{entrypoint: sh, args: [scripts/job.sh]}");
    let (main, words) = (Digest::of(text.as_bytes()), Digest::of(b"words"));
    let proposed = crate::making::Proposed {
        what: crate::making::TOOL,
        name: "agt".to_owned(),
        digest: main,
        files: [("tool.yml".to_owned(), main), ("words.txt".to_owned(), words)].into(),
        permissions: None,
        foreword: String::new(),
    };
    place.write("project/.haft/tools/agt/tool.yml", &text);
    let accept = || place.runtime.block_on(place.shelf.accept_proposed(&proposed)).map_err(|error| error.message);
    for (path, why) in [
        ("project/.haft/tools/agt/words.txt", "words.txt` changed"),
        ("project/.haft/tools/agt/more.txt", "more.txt` came"),
        ("project/scripts/job.sh", "`scripts/job.sh` came"),
    ] {
        place.write("project/.haft/tools/agt/words.txt", "words");
        place.write(path, "swapped while somebody was asked");
        assert!(accept().unwrap_err().contains(why), "{path}");
        std::fs::remove_file(place.path(path)).unwrap();
    }
    std::fs::remove_file(place.path("project/.haft/tools/agt/words.txt")).unwrap();
    assert!(accept().unwrap_err().contains("words.txt` went away"));
    place.write("project/.haft/tools/agt/words.txt", "words");
    accept().unwrap();
    assert_eq!(place.barred("agt"), None);
    place.write("project/scripts/job.sh", "later");
    assert!(place.barred("agt").unwrap().contains("`scripts/job.sh` came"));
}
