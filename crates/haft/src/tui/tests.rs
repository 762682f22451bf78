//! The screen without a terminal: what comes of what happens, and how that looks. The feed is scripted.

mod looks;
mod moves;

use super::screen::{Input, Screen, Wish};
use super::view::View;
use haft_core::agent::Usage;
use haft_core::agent::turns::End;
use haft_core::approval::{Decision, Verdict};
use haft_core::tool::Severity;
use haft_core::{CallId, Hold, Outcome, SessionId, ToolName};
use haft_runtime::Question;
use haft_runtime::agent::{Ended, Told};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use serde_json::json;

impl Screen {
    /// A screen as it is at the beginning.
    fn scene() -> Self {
        let mut screen = Self::default();
        screen.about.model = "anthropic/claude".to_owned();
        screen.about.session = "chat-1".to_owned();
        screen.about.project = "/src/plants".to_owned();
        screen.about.config = "~/.config/haft/config.yml".to_owned();
        screen.update(Input::Tick(1_000));
        screen
    }

    fn press(&mut self, code: KeyCode) -> Vec<Wish> {
        self.update(Input::Key(KeyEvent::from(code)))
    }

    fn hold(&mut self, modifiers: KeyModifiers, code: KeyCode) -> Vec<Wish> {
        self.update(Input::Key(KeyEvent::new(code, modifiers)))
    }

    fn control(&mut self, c: char) -> Vec<Wish> {
        self.hold(KeyModifiers::CONTROL, KeyCode::Char(c))
    }

    fn types(&mut self, text: &str) {
        for c in text.chars() {
            self.press(KeyCode::Char(c));
        }
    }

    /// Types and means it.
    fn says(&mut self, text: &str) -> Vec<Wish> {
        self.types(text);
        self.press(KeyCode::Enter)
    }

    fn hears(&mut self, told: Told) -> Vec<Wish> {
        self.update(Input::Told(Box::new(told)))
    }

    fn at(&mut self, now: u64) {
        self.update(Input::Tick(now));
    }

    /// The picture, line by line, without what is empty at the ends of lines.
    fn drawn(&mut self, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        let mut view = View::new(false);
        terminal.draw(|frame| view.draw(self, frame)).unwrap();
        let buffer = terminal.backend().buffer();
        let line = |y: u16| {
            let mut line = String::new();
            let mut skip = 0;
            for x in 0..width {
                let symbol = buffer[(x, y)].symbol();
                if skip == 0 {
                    line.push_str(symbol);
                    skip = unicode_width::UnicodeWidthStr::width(symbol).max(1);
                }
                skip -= 1;
            }
            line.trim_end().to_owned()
        };
        (0..height).map(line).collect::<Vec<_>>().join("\n")
    }
}

fn words(text: &str) -> Told {
    Told::Content { text: text.to_owned() }
}

fn begins(id: &str, preview: &str) -> Told {
    Told::ToolStart {
        id: id.to_owned(),
        call_id: call_id(id),
        name: "file_edit".to_owned(),
        preview: preview.to_owned(),
    }
}

fn prints(id: &str, message: &str) -> Told {
    Told::ToolProgress { id: id.to_owned(), message: message.to_owned() }
}

fn call_id(id: &str) -> CallId {
    CallId::new(1, id.bytes().map(u64::from).sum())
}

fn gives(id: &str, output: &str) -> Told {
    Told::ToolEnd { id: id.to_owned(), outcome: Box::new(outcome(id, output, true)) }
}

fn outcome(id: &str, output: &str, success: bool) -> Outcome {
    let verdict = Verdict::new(Decision::Allow, "default", "it only reads");
    let error = haft_core::CallError::invalid(output.to_owned());
    let mut outcome = Outcome::failure(call_id(id), "file.edit", error, verdict);
    if success {
        (outcome.error, outcome.success) = (None, true);
        output.clone_into(&mut outcome.output);
    }
    outcome.duration_ms = 340;
    outcome
}

fn used(filled: u64) -> Told {
    let last = Usage { input: filled, output: 0, ..Usage::default() };
    let total = Usage { input: filled, cache_read: 9_000, output: 420, ..Usage::default() };
    Told::Usage { last, total, cost_micros: Some(12_300), window: 200_000 }
}

fn ends(end: End) -> Told {
    Told::Done { ended: Box::new(ended(end)) }
}

fn ended(end: End) -> Ended {
    Ended {
        session: SessionId::default(),
        end,
        text: "Done it.".to_owned(),
        turns: 2,
        calls: 1,
        usage: Usage::default(),
        cost_micros: Some(12_300),
        duration_ms: 4_000,
    }
}

fn child(id: &str, name: &str, task: &str) -> Told {
    Told::SubagentStart {
        subagent_id: id.to_owned(),
        name: name.to_owned(),
        task: task.to_owned(),
        role: Some("explorer".to_owned()),
        mode: "sync".to_owned(),
    }
}

fn within(id: &str, inner: Told) -> Told {
    Told::SubagentEvent { subagent_id: id.to_owned(), inner: Box::new(inner) }
}

fn question() -> Box<Question> {
    Box::new(Question {
        call_id: CallId::new(0, 0),
        tool: ToolName::new("file.edit").unwrap(),
        preview: "file.edit: a.txt".to_owned(),
        verdict: Verdict::new(Decision::Ask, "default", "it changes files, and no rule allows that unasked"),
        severity: Severity::High,
        args: json!({"path": "a.txt"}),
        diff: Some("--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+t\x1b[2Jwo\n".to_owned()),
        ranked: None,
        problem: None,
        subject: "a.txt".to_owned(),
        places: vec!["a.txt".to_owned()],
        hold: None,
        shell: None,
        asker: None,
        sources: Vec::new(),
        class: None,
        rules: Vec::new(),
        tried: None,
        executed: haft_core::executed::ExecutedFiles::default(),
        trial: None,
        shown: None,
        basis: haft_core::record::Digest::ZERO,
    })
}

/// What is known of a shell command, as far as its text says it.
fn known(text: &str) -> haft_runtime::judge::ShellShown {
    let ground = haft_core::shell::Ground { cwd: "/src/plants", home: None, table: haft_core::shell::Table::shipped() };
    let judged = haft_core::shell::judge(text, &ground);
    let named = |targets: &[haft_core::shell::Target]| targets.iter().map(|target| target.text().to_owned()).collect();
    let (reads, writes) = (named(&judged.reads), named(&judged.writes));
    let shell = haft_core::admit::Shell { judged, unsettled: Vec::new() };
    haft_runtime::judge::ShellShown { shell, reads, writes, rules: Vec::new() }
}

fn shell_question() -> Box<Question> {
    let hold = Hold {
        level: "landlock and namespaces".to_owned(),
        enforced: true,
        permissions: std::collections::BTreeMap::new(),
        network: false,
        writes: true,
        gap: None,
        guest: None,
    };
    Box::new(Question {
        tool: ToolName::new("shell.exec").unwrap(),
        preview: "shell.exec: $ touch x".to_owned(),
        subject: "touch x".to_owned(),
        hold: Some(hold),
        class: Some(haft_core::shell::Class::Silent),
        rules: vec!["touch x".to_owned()],
        diff: None,
        ranked: None,
        ..*question()
    })
}
