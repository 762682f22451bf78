//! What a caller sees of files of every kind.

use super::*;
use crate::halt::Halt;
use crate::testing::Stage;
use haft_core::ErrorKind;
use serde_json::Value;
use std::fmt::Write as _;

mod encodings;
mod images;

fn act(stage: &Stage, args: Value) -> Result<Reply, CallError> {
    stage.act(&tool(), args)
}

fn lines(count: usize) -> String {
    (1..=count).fold(String::new(), |mut text, n| {
        let _ = writeln!(text, "line {n}");
        text
    })
}

/// What the session knows of a file afterwards, as an overwrite would ask.
fn overwrite(stage: &Stage, path: &str) -> String {
    let write = crate::tools::file::write::tool();
    stage.act(&write, json!({"path": path, "content": "new"})).map_or_else(|error| error.message, |reply| reply.text)
}

#[test]
fn text_is_numbered_as_cat_does() {
    let stage = Stage::new();
    stage.file("a.txt", "\u{feff}one\r\n\ntwo\tand\nthree");
    let reply = act(&stage, json!({"path": "a.txt"})).unwrap();
    assert_eq!(reply.text, "     1\tone\n     2\t\n     3\ttwo\tand\n     4\tthree");
    assert_eq!(reply.data.unwrap()["total_lines"], 4);
    assert_eq!(reply.whole, None);
    assert_eq!(reply.labels, []);
}

#[test]
fn plain_text_is_byte_for_byte() {
    let stage = Stage::new();
    let content = "\u{feff}one\r\ntwo\r\n";
    stage.file("a.txt", content);
    let reply = act(&stage, json!({"path": "a.txt", "line_numbers": false})).unwrap();
    assert_eq!(reply.text, content);
}

#[test]
fn a_page_says_where_to_go_on() {
    let stage = Stage::new();
    stage.file("a.txt", lines(5400));
    let reply = act(&stage, json!({"path": "a.txt"})).unwrap();
    assert!(reply.text.starts_with("     1\tline 1\n"));
    assert!(reply.text.ends_with("  2000\tline 2000\n[lines 1-2000 of 5400; line 2001 comes next]"));
    assert_eq!(reply.whole.as_deref(), Some("a.txt"));
    let reply = act(&stage, json!({"path": "a.txt", "offset": 5398, "limit": 2})).unwrap();
    assert_eq!(reply.text, "  5398\tline 5398\n  5399\tline 5399\n[lines 5398-5399 of 5400; line 5400 comes next]");
    let reply = act(&stage, json!({"path": "a.txt", "offset": 5400})).unwrap();
    assert_eq!(reply.text, "  5400\tline 5400\n");
}

#[test]
fn no_page_has_more_lines_than_the_maximum() {
    let stage = Stage::new();
    stage.file("a.txt", lines(5400));
    let reply = act(&stage, json!({"path": "a.txt", "limit": 2001})).unwrap();
    assert!(reply.text.ends_with("  2000\tline 2000\n[lines 1-2000 of 5400; line 2001 comes next]"));
}

#[test]
fn a_sparse_file_of_a_terabyte_is_not_read_to_its_end() {
    let stage = Stage::new();
    let sparse = stage.file("sparse", "one\ntwo\n");
    std::fs::File::options().write(true).open(sparse).unwrap().set_len(1 << 40).unwrap();
    // Nothing but NUL: binary as soon as it is in what is looked at first.
    assert_eq!(act(&stage, json!({"path": "sparse"})).unwrap_err().message, "sparse is a binary file (1024.0GB)");
    let long = stage.file("long", "line\n".repeat(200));
    std::fs::File::options().write(true).open(long).unwrap().set_len(1 << 40).unwrap();
    let reply = act(&stage, json!({"path": "long", "limit": 200})).unwrap();
    assert!(reply.text.ends_with("   200\tline\n[lines 1-200; the file goes on; line 201 comes next]"));
}

#[test]
fn a_file_that_grows_while_it_is_read_has_an_end() {
    let stage = Stage::new();
    let path = stage.file("log", "line\n");
    let halt = Halt::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut file = std::fs::File::options().append(true).open(&path).unwrap();
            while halt.check().is_ok() && file.metadata().unwrap().len() < 256 << 20 {
                std::io::Write::write_all(&mut file, &b"line\n".repeat(20_000)).unwrap();
            }
        });
        for _ in 0..5 {
            let reply = act(&stage, json!({"path": "log", "limit": 1}));
            assert!(reply.unwrap().text.starts_with("     1\tline\n"));
        }
        halt.cancel();
    });
}

#[test]
fn an_offset_past_the_end_names_the_number_of_lines() {
    let stage = Stage::new();
    stage.file("a.txt", "one\ntwo");
    stage.file("b.txt", "one\n");
    let say = |path: &str, offset: u64| act(&stage, json!({"path": path, "offset": offset})).unwrap_err();
    assert_eq!(say("a.txt", 3).message, "a.txt has 2 lines; line 3 is past its end");
    assert_eq!(say("b.txt", u64::MAX).message, "b.txt has 1 line; line 18446744073709551615 is past its end");
    assert_eq!(say("b.txt", 2).kind, ErrorKind::InvalidInput);
}

#[test]
fn a_page_ends_at_a_line_before_it_grows_too_large() {
    let stage = Stage::new();
    stage.file("a.txt", format!("{}\n", "x".repeat(20_000)).repeat(5));
    let reply = act(&stage, json!({"path": "a.txt"})).unwrap();
    assert!(reply.text.ends_with("x\n[lines 1-2 of 5; line 3 comes next]"));
    assert!(reply.text.len() < lines::BYTES_MAX + 100);
}

#[test]
fn a_line_longer_than_a_page_is_cut_between_characters() {
    let stage = Stage::new();
    stage.file("last.txt", "日".repeat(100_000));
    stage.file("more.txt", format!("{}\nnext\n", "日".repeat(100_000)));
    let text = |path: &str| act(&stage, json!({"path": path})).unwrap().text;
    assert!(text("last.txt").ends_with(
        "日\n[line 1 is cut after 51192 of 300000 bytes (a shell shows the rest: `cut -b`, `tail -c`); lines 1-1 of 1]"
    ));
    assert!(text("more.txt").ends_with("日\n[line 1 is cut after 51192 of 300000 bytes (a shell shows the rest: `cut -b`, `tail -c`); lines 1-1 of 2; line 2 comes next]"));
    assert_eq!(overwrite(&stage, "last.txt"), "only a part of last.txt has been read in this session");
}

#[test]
fn a_far_page_of_a_large_file_is_quick_and_the_rest_uncounted() {
    let stage = Stage::new();
    let piece = "0123456789\n".repeat(100_000);
    let content = piece.repeat(80);
    stage.file("big.log", &content);
    let begun = std::time::Instant::now();
    let reply = act(&stage, json!({"path": "big.log", "offset": 7_000_000, "limit": 1})).unwrap();
    assert!(reply.text.ends_with("\n[lines 7000000-7000000; the file goes on; line 7000001 comes next]"));
    assert!(reply.text.starts_with("7000000\t0123456789\n"));
    let error = act(&stage, json!({"path": "big.log", "offset": 9_000_000})).unwrap_err();
    assert_eq!(error.message, "big.log has 8000000 lines; line 9000000 is past its end");
    assert!(begun.elapsed().as_secs() < 10, "took {:?}", begun.elapsed());
}

#[test]
fn reading_stops_when_the_call_is_cancelled() {
    let stage = Stage::new();
    stage.file("a.txt", "x");
    let halt = Halt::new();
    halt.cancel();
    let error = stage.act_until(&tool(), json!({"path": "a.txt"}), &halt).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Cancelled);
}

#[test]
fn what_is_not_text_is_named() {
    let stage = Stage::new();
    stage.file("a.out", b"\x7fELF\x02\0\0\0");
    stage.file("b.dat", b"a\0b");
    stage.file("d.pdf", b"%PDF-1.7 ...");
    stage.file("empty", "");
    rustix::fs::mkfifoat(rustix::fs::CWD, stage.root().join("fifo"), rustix::fs::Mode::RUSR).unwrap();
    std::fs::create_dir(stage.root().join("dir")).unwrap();
    let say = |path: &str| match act(&stage, json!({"path": path})) {
        Ok(reply) => reply.text,
        Err(CallError { message, hint, .. }) => format!("{message} / {}", hint.unwrap_or_default()),
    };
    let said = ["a.out", "b.dat", "d.pdf", "empty", "fifo", "dir", "none"].map(say).join("\n");
    insta::assert_snapshot!(said, @r"
    a.out is a binary file (ELF, 8B) / read it with encoding base64
    b.dat is a binary file (3B) / read it with encoding base64
    PDF document, 12B; its text cannot be shown here: extract it in a shell with pdftotext, or read the file with encoding base64
    File exists but is empty
    fifo: not a regular file / 
    dir is a directory / list it with file.list, or `ls` in a shell
    none does not exist / 
    ");
}

#[test]
fn base64_gives_the_whole_file() {
    let stage = Stage::new();
    stage.file("a.bin", b"a\0b");
    let reply = act(&stage, json!({"path": "a.bin", "encoding": "base64"})).unwrap();
    assert_eq!(reply.text, "YQBi");
    assert_eq!(overwrite(&stage, "a.bin"), "Overwrote a.bin (3B, 1 lines)");
    let error = act(&stage, json!({"path": "a.bin", "encoding": "base64", "offset": 1})).unwrap_err();
    assert_eq!(error.kind, ErrorKind::InvalidInput);
    let large = std::fs::File::create(stage.root().join("large")).unwrap();
    large.set_len(2 << 30).unwrap();
    let error = act(&stage, json!({"path": "large", "encoding": "base64"})).unwrap_err();
    assert_eq!(error.message, "large is larger than 10.0MB, the limit for this way of reading");
    assert_eq!(act(&stage, json!({"path": "large"})).unwrap_err().message, "large is a binary file (2.0GB)");
}

#[test]
fn only_a_file_seen_whole_may_be_overwritten() {
    let stage = Stage::new();
    stage.file("a.txt", "one\ntwo\n");
    act(&stage, json!({"path": "a.txt", "offset": 2})).unwrap();
    assert_eq!(overwrite(&stage, "a.txt"), "only a part of a.txt has been read in this session");
    act(&stage, json!({"path": "a.txt"})).unwrap();
    assert_eq!(overwrite(&stage, "a.txt"), "Overwrote a.txt (3B, 1 lines)");
    stage.file("a.txt", "other\n");
    assert_eq!(overwrite(&stage, "a.txt"), "a.txt has changed since it was read");
}

#[test]
fn a_file_whose_size_lies_is_read_to_its_end() {
    let stage = Stage::new();
    let reply = act(&stage, json!({"path": "/proc/self/status", "limit": 1})).unwrap();
    assert!(reply.text.starts_with("     1\tName:"));
    assert_eq!(reply.labels, [Label::Outside]);
}

#[test]
fn the_origin_of_data_is_told() {
    let stage = Stage::new();
    stage.file(".env", "A=1\n");
    std::fs::write(stage.outside().join("id_rsa"), "key\n").unwrap();
    let labels = |path: &str| act(&stage, json!({"path": path})).unwrap().labels;
    assert_eq!(labels(".env"), [Label::Sensitive]);
    assert_eq!(labels(stage.outside().join("id_rsa").to_str().unwrap()), [Label::Outside, Label::Sensitive]);
}

#[test]
fn reading_takes_time_in_proportion_to_what_lies_before_the_page() {
    let stage = Stage::new();
    for count in [100_000, 800_000] {
        stage.file(&count.to_string(), lines(count));
        let wide: Vec<u8> = lines(count / 4).encode_utf16().flat_map(u16::to_be_bytes).collect();
        stage.file(&format!("wide{count}"), wide);
    }
    crate::testing::assert_linear(100_000, |count| {
        let read = |path: String, line: usize| act(&stage, json!({"path": path, "offset": line})).unwrap().text;
        assert!(read(count.to_string(), count).contains(&format!("line {count}\n")));
        assert!(read(format!("wide{count}"), count / 4).contains(&format!("line {}\n", count / 4)));
    });
}
