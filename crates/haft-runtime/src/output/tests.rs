//! Order, marks, cuts and bounds of what a program prints.

use super::ends::{HEAD, TAIL};
use super::*;
use haft_core::shape::Keep;

const WIDE: Limits = Limits { lines: usize::MAX, bytes: 256 << 10, keep: Keep::HeadAndTail };

struct Trial {
    dir: tempfile::TempDir,
    lines: Vec<String>,
}

impl Trial {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap(), lines: Vec::new() }
    }

    fn run(&mut self, order: Order, limits: Limits, pieces: &[(usize, &[u8])]) -> Shown {
        let lines = &mut self.lines;
        let mut tell = |line: &[u8]| lines.push(String::from_utf8_lossy(line).into_owned());
        let mut collector = Collector::new(order, self.dir.path().join("out/c.txt"), &mut tell);
        for (number, bytes) in pieces {
            collector.take(*number, bytes);
        }
        collector.finish().shown(limits)
    }

    fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.dir.path().join("out")).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

const BOTH: &[(usize, &[u8])] = &[(0, b"one\nt"), (1, b"oops\nmo"), (0, b"wo\nthree"), (1, b"re\n")];

#[test]
fn lines_come_in_order_and_complaints_are_marked() {
    let mut trial = Trial::new();
    let shown = trial.run(Order::Interleaved, WIDE, BOTH);
    assert_eq!(shown.text, "one\n[stderr] oops\ntwo\n[stderr] more\nthree");
    assert_eq!(trial.lines, ["one", "[stderr] oops", "two", "[stderr] more", "three"]);
    assert!(shown.whole.is_none() && trial.files().is_empty(), "what fits needs no file");
    assert_eq!(parted(&shown.text), "one\ntwo\nthree\n[stderr] oops\n[stderr] more\n");
    let shown = trial.run(Order::Separate, WIDE, BOTH);
    assert_eq!(shown.text, "one\ntwo\nthree\n[stderr] oops\n[stderr] more\n");
}

#[test]
fn what_is_cut_is_kept_whole() {
    let limits = Limits { bytes: 20, ..WIDE };
    let text = b"1234567890\n1234567890\n1234567890\n";
    let mut trial = Trial::new();
    let shown = trial.run(Order::Interleaved, limits, &[(0, text)]);
    assert_eq!(shown.text, "1234567890\n12345\n[Output truncated - 13 bytes hidden]\n890\n");
    assert_eq!(std::fs::read(shown.whole.unwrap()).unwrap(), text);
    let mut trial = Trial::new();
    let shown = trial.run(Order::Separate, limits, &[(0, text), (1, b"oops")]);
    assert_eq!(std::fs::read(shown.whole.unwrap()).unwrap(), [&text[..], b"[stderr] oops"].concat());
    assert_eq!(trial.files(), ["c.txt"]);
}

#[test]
fn much_is_bounded_in_memory_and_whole_in_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let mut count = 0;
    let mut tell = |_: &[u8]| count += 1;
    let mut collector = Collector::new(Order::Interleaved, dir.path().join("c.txt"), &mut tell);
    let piece = "日本語 0123456789\n".repeat(3000);
    for _ in 0..200 {
        collector.take(0, piece.as_bytes());
        let held: usize = collector.texts.iter().map(Ends::held).sum();
        assert!(held <= HEAD + 3 * TAIL, "{held}");
    }
    let shown = collector.finish().shown(WIDE);
    assert_eq!(count, 600_000);
    assert!(shown.text.len() < 300_000 && !shown.text.contains('\u{fffd}'));
    assert!(shown.text.starts_with("日本語") && shown.text.ends_with("9\n"));
    assert_eq!(std::fs::metadata(shown.whole.unwrap()).unwrap().len(), 200 * piece.len() as u64);
}

#[test]
fn a_line_without_end_is_passed_on_in_pieces() {
    let mut trial = Trial::new();
    let piece = vec![b'x'; 50 << 10];
    let long: (usize, &[u8]) = (1, &piece);
    let pieces = [long, long, long, long, (0, b"out\n")];
    let shown = trial.run(Order::Interleaved, WIDE, &pieces);
    assert_eq!(shown.text.matches("[stderr] ").count(), 1, "one line has one mark");
    assert!(shown.text.contains("x\nout\n"));
}

#[test]
fn what_is_not_text_is_replaced_and_kept() {
    let mut trial = Trial::new();
    let image = [b"\x89PNG\r\n\x1a\n".as_slice(), &[0; 2000]].concat();
    let shown = trial.run(Order::Interleaved, WIDE, &[(0, &image), (1, b"done\n"), (0, &image)]);
    let path = trial.dir.path().join("out/c.stdout.bin");
    let notice = format!("[stderr] done\n[stdout is not text: PNG, 4016 bytes, kept in {}]\n", path.display());
    assert_eq!(shown.text, notice);
    assert_eq!(std::fs::read(path).unwrap(), [image.clone(), image].concat());
    let mut trial = Trial::new();
    let shown = trial.run(Order::Interleaved, WIDE, &[(0, b"\x89PNG\r\n"), (0, b"\x1a\n\0")]);
    assert!(shown.text.starts_with("[stdout is not text: PNG, 9 bytes"), "in pieces, too: {}", shown.text);
    let mut trial = Trial::new();
    let shown = trial.run(Order::Interleaved, WIDE, &[(0, b"text first\n"), (0, b"then \0")]);
    assert!(shown.text.starts_with("text first\n[stdout is not text: binary, 17 bytes"), "{}", shown.text);
}

#[test]
fn a_flood_is_told_in_part() {
    let (mut pace, mut told) = (Pace::default(), Vec::new());
    for number in 0..10_000 {
        pace.line(number.to_string().as_bytes(), &mut |line| told.push(line));
    }
    assert!(told.len() < 100 && told[0] == "0", "{}", told.len());
}
