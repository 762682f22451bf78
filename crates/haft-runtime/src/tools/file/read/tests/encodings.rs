//! Text that is not UTF-8.

use super::*;

fn said(stage: &Stage, path: &str) -> (String, Value) {
    let reply = act(stage, json!({"path": path})).unwrap();
    (reply.text, reply.data.unwrap())
}

fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

#[test]
fn text_of_another_encoding_is_decoded_and_its_encoding_named() {
    let stage = Stage::new();
    stage.file("latin.txt", b"caf\xe9\r\nend\n");
    stage.file("wide.txt", utf16("\u{feff}één\r\ntwee"));
    stage.file("wide-without.txt", utf16("plain enough\n"));
    stage.file("mark.txt", "\u{feff}é\n");
    let (latin, data) = said(&stage, "latin.txt");
    assert_eq!(latin, "     1\tcafé\n     2\tend\n[encoding windows-1252; edits keep it]");
    assert_eq!((&data["encoding"], &data["total_lines"]), (&json!("windows-1252"), &json!(2)));
    let (wide, data) = said(&stage, "wide.txt");
    assert_eq!(wide, "     1\téén\n     2\ttwee\n[encoding UTF-16LE with BOM; edits keep it]");
    assert_eq!((&data["encoding"], &data["bom"]), (&json!("UTF-16LE"), &json!(true)));
    assert_eq!(said(&stage, "wide-without.txt").0, "     1\tplain enough\n[encoding UTF-16LE; edits keep it]");
    let (mark, data) = said(&stage, "mark.txt");
    assert_eq!((mark.as_str(), &data["bom"]), ("     1\té\n", &json!(true)));
    // Plain text is for programs: nothing is added to it.
    let plain = act(&stage, json!({"path": "wide.txt", "line_numbers": false})).unwrap();
    assert_eq!((plain.text.as_str(), plain.warnings.len()), ("één\r\ntwee", 1));
}

#[test]
fn a_few_bad_bytes_do_not_hide_a_text() {
    let stage = Stage::new();
    stage.file("log", [lines(100).as_bytes(), b"junk \xff\xfe\x01\0\nend\n"].concat());
    let text = |offset: u64| act(&stage, json!({"path": "log", "offset": offset, "limit": 1})).unwrap().text;
    assert!(text(1).starts_with("     1\tline 1\n[lines 1-1 of 102"), "{}", text(1));
    assert!(text(101).contains("junk \u{fffd}\u{fffd}"), "{}", text(101));
    assert!(text(101).contains("[bytes that are not valid UTF-8 are shown as \u{fffd}]"), "{}", text(101));
    assert_eq!(text(102), "   102\tend\n");
    // The character itself is nothing of the kind.
    stage.file("own", "a \u{fffd}\n");
    assert_eq!(said(&stage, "own").0, "     1\ta \u{fffd}\n");
}

#[test]
fn a_large_file_of_another_encoding_is_read_page_by_page() {
    let stage = Stage::new();
    let ascii = "0123456789abcdef\n".repeat(1_100_000);
    stage.file("latin.log", [ascii.as_bytes(), b"caf\xe9 \xfc\xf1\n"].concat());
    stage.file("wide.log", utf16(&format!("\u{feff}{}één\n", "0123456789abcdef\n".repeat(600_000))));
    let text = |path: &str, offset: u64| act(&stage, json!({"path": path, "offset": offset})).unwrap().text;
    assert_eq!(text("latin.log", 1_100_001), "1100001\tcafé üñ\n[encoding windows-1252; edits keep it]");
    assert_eq!(text("wide.log", 600_001), "600001\téén\n[encoding UTF-16LE with BOM; edits keep it]");
}

#[test]
fn what_was_decoded_may_be_overwritten_and_edited() {
    let stage = Stage::new();
    let path = stage.file("latin.txt", b"caf\xe9\n");
    said(&stage, "latin.txt");
    assert_eq!(overwrite(&stage, "latin.txt"), "Overwrote latin.txt (3B, 1 lines), in its encoding windows-1252");
    let edit = crate::tools::file::edit::tool();
    let args = json!({"path": path, "old_string": "café", "new_string": "thé"});
    assert_eq!(
        stage.act(&edit, args).unwrap().text,
        "Edited latin.txt: 1 replacement at line 1; encoding windows-1252"
    );
}
