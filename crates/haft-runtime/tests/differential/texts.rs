//! Texts of every encoding and line end. Python, not haft, makes the bytes of them.

use crate::cases::Generator;
use crate::project::Project;
use crate::python::Python;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

/// What the programs share: `content(text, codec, mark)` makes the bytes of a file, `base64` and `bytes` carry them.
pub(crate) const CONTENT: &str = r#"
import base64 as b64
MARKS = {"utf-8": b"\xef\xbb\xbf", "utf-16-le": b"\xff\xfe", "utf-16-be": b"\xfe\xff"}
def content(text, codec, mark):
    return (MARKS[codec] if mark else b"") + text.encode(codec, "surrogateescape" if codec == "utf-8" else "strict")
def base64(data):
    return b64.b64encode(data).decode()
def bytes_of(text):
    return b64.b64decode(text)
"#;

/// An encoding as Python and haft call it, a text that tells it from others, and words that it has.
pub(crate) struct Script {
    pub(crate) codec: &'static str,
    pub(crate) name: &'static str,
    pub(crate) sentence: &'static str,
    pub(crate) words: &'static [&'static str],
}

pub(crate) const SCRIPTS: &[Script] = &[
    Script { codec: "utf-8", name: "UTF-8", sentence: "", words: &["é", "日本", "𝄞", "“", "’"] },
    Script {
        codec: "utf-16-le",
        name: "UTF-16LE",
        sentence: "A text of plain words in two bytes each.",
        words: &["é", "日", "𝄞"],
    },
    Script {
        codec: "utf-16-be",
        name: "UTF-16BE",
        sentence: "A text of plain words in two bytes each.",
        words: &["é", "日", "𝄞"],
    },
    Script {
        codec: "cp1252",
        name: "windows-1252",
        sentence: "Grüße aus Köln, schöne Häuser und süße Äpfel",
        words: &["ä", "ß", "é", "“", "€"],
    },
    Script {
        codec: "cp1251",
        name: "windows-1251",
        sentence: "Это обычный русский текст, довольно длинный.",
        words: &["я", "текст"],
    },
    Script {
        codec: "shift_jis",
        name: "Shift_JIS",
        sentence: "これは日本語の文章です。今日は天気がいいですね。",
        words: &["日本", "ソ", "表"],
    },
    Script {
        codec: "gbk",
        name: "GBK",
        sentence: "这是一个中文文件，内容是测试。今天天气很好。",
        words: &["中文", "測"],
    },
    Script {
        codec: "big5",
        name: "Big5",
        sentence: "這是一個中文檔案，內容是測試。今天天氣很好。",
        words: &["中文", "功"],
    },
    Script {
        codec: "euc_kr",
        name: "EUC-KR",
        sentence: "안녕하세요 세계, 이것은 시험입니다. 날씨가 좋네요.",
        words: &["시험"],
    },
];

/// A file that a case is about.
pub(crate) struct File {
    pub(crate) script: &'static Script,
    pub(crate) mark: bool,
    /// What stands in it. A character U+DC80 to U+DCFF stands for a byte that is not UTF-8, as in Python.
    pub(crate) text: Value,
}

impl File {
    /// A file of a few small pieces, so that texts in it recur.
    pub(crate) fn generate(generator: &mut Generator) -> Self {
        let script = &SCRIPTS[if generator.chance(40) { 0 } else { generator.below(SCRIPTS.len()) }];
        let ends: &[&str] =
            generator.pick_slice(&[&["\n"], &["\r\n"], &["\n", "\r\n"], &["\n", "\r\n", "\r", "\r\r\n"]]);
        let mut pieces = vec!["a", "b", "ab", " ", "'", "\""];
        pieces.extend(script.words.iter().take(2));
        for _ in 0..2 {
            pieces.extend(ends);
        }
        let body = generator.text(&pieces, 24);
        let text = if script.sentence.is_empty() { body } else { format!("{}{}{body}", script.sentence, ends[0]) };
        Self { script, mark: script.codec.starts_with("utf") && generator.chance(50), text: json!(text) }
    }

    /// A text that may well occur in such a file.
    pub(crate) fn sought(&self, generator: &mut Generator) -> String {
        let mut pieces = vec!["a", "b", "\n", "\n", "\r\n", "\r", "'", "\"", " "];
        pieces.extend(self.script.words);
        generator.text(&pieces, 3)
    }

    pub(crate) fn question(&self) -> Value {
        json!({"text": self.text, "codec": self.script.codec, "mark": self.mark})
    }
}

pub(crate) fn bytes(base64: &Value) -> Vec<u8> {
    BASE64_STANDARD.decode(base64.as_str().unwrap()).unwrap()
}

pub(crate) fn base64(bytes: &[u8]) -> String {
    BASE64_STANDARD.encode(bytes)
}

/// Lets the session know a file, whatever it is.
pub(crate) fn see(project: &Project, path: &str) {
    let outcome = project.call("file.read", json!({"path": path, "encoding": "base64"}));
    assert!(outcome.success, "{outcome:?}");
}

/// A Python process with these definitions and those of the program.
pub(crate) fn python(program: &str) -> Python {
    Python::start(&format!("{CONTENT}\n{program}"))
}
