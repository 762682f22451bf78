//! How it looks: at the usual size, at a large one, at the smallest, and below that.

use super::*;
use crate::tui::screen::Over;

fn busy() -> Screen {
    let mut screen = Screen::scene();
    screen.says("fix the typo in a.txt");
    screen.hears(Told::Turn { number: 0, model: "anthropic/claude".into() });
    screen.hears(Told::Thinking { text: "The file is small.\nI read it first.".into() });
    screen.hears(words("I'll **read** it first, then fix `a.txt`:\n\n- read\n- edit"));
    screen.hears(begins("a", "file.read: a.txt"));
    screen.hears(gives("a", "one\ntwo\nthree"));
    screen.hears(begins("b", "shell.exec: $ cargo test"));
    screen.hears(prints("b", "Compiling a\nCompiling b\nCompiling c\nrunning 日本語"));
    screen.hears(used(12_345));
    screen.at(13_000);
    screen
}

#[test]
fn a_conversation_at_the_usual_size() {
    let mut screen = busy();
    insta::assert_snapshot!(screen.drawn(80, 24), @r"
    > fix the typo in a.txt

    ∴ I read it first.

    I'll read it first, then fix a.txt:

    • read
    • edit

    ✓ file.read a.txt  0.3s
      └ one  (+2 lines)
    ⠋ shell.exec $ cargo test  12s
      │ Compiling b
      │ Compiling c
      │ running 日本語






    ────────────────────────────────────────────────────────────────────────────────
    > say something meanwhile
    ⠋ working 12s  esc to stop          anthropic/claude · 12.3k/200k (6%) · $0.0123
    ");
}

#[test]
fn children_are_a_tree() {
    let mut screen = Screen::scene();
    screen.says("look around");
    screen.hears(child("k", "scout", "find where errors are made"));
    screen.hears(within("k", Told::Turn { number: 0, model: "m".into() }));
    screen.hears(within("k", words("I look at the **sources**.")));
    screen.hears(within("k", begins("b", "file.search: errors")));
    screen.hears(within("k", child("g", "helper", "read one file")));
    screen.hears(within("k", within("g", begins("c", "file.read: x"))));
    screen.hears(child("l", "writer", "write it down"));
    let ended = Told::SubagentEnd { subagent_id: "l".into(), ended: Box::new(ended(End::Done)) };
    screen.hears(ended);
    screen.at(5_000);
    insta::assert_snapshot!(screen.drawn(80, 14), @r"
    > look around

    ⠋ ▸ scout (explorer): find where errors are made  1 turn, 4.0s
      └ helper (explorer)
    ✓ ▸ writer (explorer): write it down  2 turns, $0.0123
      └ Done it.





    ────────────────────────────────────────────────────────────────────────────────
    > say something meanwhile
    ⠋ working 4.0s  esc to stop                            anthropic/claude · chat-1
    ");
    screen.press(KeyCode::Tab);
    screen.press(KeyCode::Up);
    screen.press(KeyCode::Enter);
    insta::assert_snapshot!(screen.drawn(80, 16), @r"
    > look around

    ⠋ ▾ scout (explorer): find where errors are made  1 turn, 4.0s
    │ I look at the sources.
    │ ⠋ file.search errors  4.0s
    │ ⠋ ▸ helper (explorer): read one file  0 turns, 4.0s
    │   └ file.read: x
    ✓ ▸ writer (explorer): write it down  2 turns, $0.0123
      └ Done it.




    ── looking: up down, enter unfolds, esc goes back ──────────────────────────────
    >
    ⠋ working 4.0s  esc goes back                          anthropic/claude · chat-1
    ");
}

#[test]
fn a_question_shows_the_effect_and_nothing_that_acts() {
    let mut screen = busy();
    screen.at(20_000);
    screen.update(Input::Ask(1, question()));
    insta::assert_snapshot!(screen.drawn(80, 24), @r"
    I'll read it first, then fix a.txt:

    • read
    • edit

    ✓ file.read a.txt  0.3s
      └ one  (+2 lines)
    ⠋ shell.exec $ cargo test  19s
      │ Compiling b
      │ Compiling c
      │ running 日本語
    ── may it? ─────────────────────────────────────────────────────────────────────
    haft: file.edit: a.txt  (severity high)
    asked because it changes files, and no rule allows that unasked

    --- a/a.txt
    +++ b/a.txt
    @@ -1 +1 @@
    -one
    +t\u{1b}[2Jwo
    [o]nce [s]ession [a]lways [r]eject [e]dit [d]iff
    ────────────────────────────────────────────────────────────────────────────────
    >
    ⠋ working 19s  esc to stop          anthropic/claude · 12.3k/200k (6%) · $0.0123
    ");
    screen.at(20_400);
    screen.press(KeyCode::Char('r'));
    screen.types("not so");
    insta::assert_snapshot!(screen.drawn(40, 10), @r"
    ── may it? ────────────── ↑ 0 ↓ 6 lines
    haft: file.edit: a.txt  (severity high)
    asked because it changes files, and no
      rule allows that unasked
    what should the model be told? (enter
    for nothing)  esc goes back
    > not so
    ────────────────────────────────────────
    >
    ⠼ working 19s  esc goes back  anthropic…
    ");
}

#[test]
fn a_shell_command_shows_what_it_is_and_how_it_is_held() {
    let mut screen = Screen::scene();
    screen.says("touch it");
    screen.at(20_000);
    screen.update(Input::Ask(1, shell_question()));
    insta::assert_snapshot!(screen.drawn(120, 14), @r"
    > touch it



    ── may it? ─────────────────────────────────────────────────────────────────────────────────────────────────────────────
    haft: shell.exec: $ touch x  (severity high)
    asked because it changes files, and no rule allows that unasked
    as a command it changes files
    confinement landlock and namespaces; no network; what it changes can be shown first and undone
    session and always cover haft's sandbox only, not an agent's own shell
    [o]nce [t]ry [s]ession [a]lways [r]eject [e]dit [d]iff
    ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
    >
    ⠋ working 19s  esc to stop                                                                     anthropic/claude · chat-1
    ");
}

#[test]
fn a_shell_command_is_shown_as_it_was_read() {
    let mut screen = Screen::scene();
    screen.says("count them");
    screen.at(20_000);
    let text = "cat *.txt | sort -u > all.txt && sudo sh -c 'rm -rf build; echo \u{1b}[2J' &";
    let asker = Some("main/helper, in /copies/1/tree".to_owned());
    let preview = "shell.exec: $ cat *.txt | sort -u > all.txt …".to_owned();
    let question = haft_runtime::Question { shell: Some(known(text)), asker, preview, ..*shell_question() };
    screen.update(Input::Ask(1, Box::new(question)));
    insta::assert_snapshot!(screen.drawn(80, 24), @r"
    > count them






    ── may it? ────────────────────────────────────────────────────── ↑ 0 ↓ 7 lines
    haft: shell.exec: $ cat *.txt | sort -u > all.txt …  (severity high)
    asked because it changes files, and no rule allows that unasked
    asked by main/helper, in /copies/1/tree
    as a command it changes files
      cat *.txt (read, in the background)
      | sort -u > all.txt (write, in the background)
      sudo sh -c rm -rf build; echo \u{1b}[2J (general, in the background)
        sh -c rm -rf build; echo \u{1b}[2J (neutral, through sudo, in the
      background)
          rm -rf build (silent, through sh, in the background)
          echo \u{1b}[2J (neutral, through sh, in the background)
      reads    /src/plants/*.txt
    [o]nce [t]ry [s]ession [a]lways [r]eject [e]dit [d]iff
    ────────────────────────────────────────────────────────────────────────────────
    >
    ⠋ working 19s  esc to stop                             anthropic/claude · chat-1
    ");
}

#[test]
fn a_form_shows_its_choices() {
    let mut screen = Screen::scene();
    screen.says("ask me");
    screen.at(20_000);
    let properties = json!({
        "which": {"title": "Which colour?", "oneOf": [{"const": "r", "title": "Red"}, {"const": "b", "title": "Blue"}]},
        "sure": {"title": "Sure?", "type": "boolean"},
        "why": {"title": "Why?", "type": "string"},
    });
    let form = haft_runtime::Form {
        from: "user.ask".into(),
        message: "Before I paint:".into(),
        schema: json!({"type": "object", "properties": properties}),
    };
    screen.update(Input::Fill(1, form));
    screen.at(20_400);
    screen.press(KeyCode::Down);
    insta::assert_snapshot!(screen.drawn(80, 24), @r"
    > ask me









    ── a tool asks ─────────────────────────────────────────────────────────────────
    user.ask asks:
    Before I paint:
    Which colour?
      ( ) 1. Red
    > (•) 2. Blue
    Sure?
      ( ) yes  (•) no
    Why?

    enter: next, and done   esc: close   ctrl-x: decline
    ────────────────────────────────────────────────────────────────────────────────
    >
    ⠼ working 19s  esc closes the form                     anthropic/claude · chat-1
    ");
}

#[test]
fn at_a_large_size_the_work_is_beside_the_conversation() {
    let mut screen = busy();
    screen.control('t');
    let row = |text: &str| crate::tui::text::row(anstyle::Style::new(), text);
    screen.update(Input::Work(vec![row("tasks"), row("a1b2 pending water the plants")]));
    screen.hears(words("\n```rust\nfn main() {}\n```\n"));
    insta::assert_snapshot!(screen.drawn(120, 40), @r"
    > fix the typo in a.txt                                                         │ tasks and runs  esc closes this
                                                                                    │
    ∴ I read it first.                                                              │ tasks
                                                                                    │ a1b2 pending water the plants
    I'll read it first, then fix a.txt:                                             │
                                                                                    │
    • read                                                                          │
    • edit                                                                          │
                                                                                    │
    ✓ file.read a.txt  0.3s                                                         │
      └ one  (+2 lines)                                                             │
    ⠋ shell.exec $ cargo test  12s                                                  │
      │ Compiling b                                                                 │
      │ Compiling c                                                                 │
      │ running 日本語                                                              │
                                                                                    │
      rust                                                                          │
      │ fn main() {}                                                                │
                                                                                    │
                                                                                    │
                                                                                    │
                                                                                    │
                                                                                    │
                                                                                    │
                                                                                    │
                                                                                    │
                                                                                    │
                                                                                    │
                                                                                    │
                                                                                    │
                                                                                    │
                                                                                    │
                                                                                    │
                                                                                    │
                                                                                    │
                                                                                    │
                                                                                    │
    ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
    > say something meanwhile
    ⠋ working 12s  esc closes the tasks                                anthropic/claude · 12.3k/200k (6%) · $0.0123 · chat-1
    ");
}

#[test]
fn at_the_usual_size_the_work_leaves_room_for_what_is_said() {
    let mut screen = busy();
    screen.control('t');
    let row = |number: usize| crate::tui::text::row(anstyle::Style::new(), format!("task {number}"));
    screen.update(Input::Work((0..30).map(row).collect()));
    screen.types("hello");
    let picture = screen.drawn(80, 24);
    for part in ["tasks and runs  esc closes this", "task 6", "… 23 more lines", "running 日本語", "> hello"] {
        assert!(picture.contains(part), "no {part:?}:\n{picture}");
    }
    screen.update(Input::Work(vec![row(0)]));
    assert!(screen.drawn(80, 24).contains("I'll read it first"), "a short list takes few lines");
    assert_eq!(screen.press(KeyCode::Esc), []);
    let picture = screen.drawn(80, 24);
    assert!(!picture.contains("tasks and runs") && picture.contains("> hello"), "{picture}");
}

#[test]
fn a_question_says_which_child_asks_and_where() {
    let mut screen = Screen::scene();
    screen.says("look around");
    for (id, mode) in [("k", "sync"), ("w", "worktree")] {
        let mut begins_so = child(id, "scout", "find it");
        if let Told::SubagentStart { mode: told, .. } = &mut begins_so {
            mode.clone_into(told);
        }
        screen.hears(begins_so);
        screen.hears(within(id, begins(id, "file.edit: a.txt")));
    }
    screen.hears(begins("own", "file.edit: a.txt"));
    let mut head = |id: &str| {
        let mut question = question();
        question.call_id = call_id(id);
        screen.asked.clear();
        screen.update(Input::Ask(1, question));
        let picture = screen.drawn(80, 24);
        let line = picture.lines().find(|line| line.contains("may it?")).unwrap();
        line.trim_matches(['─', ' ']).to_owned()
    };
    assert_eq!(head("k"), "may it? scout (explorer) asks");
    assert_eq!(head("w"), "may it? scout (explorer) asks, in a worktree");
    assert_eq!(head("own"), "may it?");
}

#[test]
fn at_the_smallest_size_everything_is_there() {
    let mut screen = busy();
    insta::assert_snapshot!(screen.drawn(40, 10), @r"

    ✓ file.read a.txt  0.3s
      └ one  (+2 lines)
    ⠋ shell.exec $ cargo test  12s
      │ Compiling b
      │ Compiling c
      │ running 日本語
    ────────────────────────────────────────
    > say something meanwhile
    ⠋ working 12s  esc to stop  anthropic/c…
    ");
}

#[test]
fn below_that_it_says_what_it_needs() {
    let mut screen = busy();
    insta::assert_snapshot!(screen.drawn(30, 5), @r"haft needs 40×10, this is 30×5");
    for (width, height) in [(1, 1), (5, 2), (39, 40), (200, 9), (0, 0)] {
        screen.drawn(width, height);
    }
}

#[test]
fn the_help_names_every_key_and_command() {
    let mut screen = Screen::scene();
    screen.press(KeyCode::Char('?'));
    insta::assert_snapshot!(screen.drawn(80, 70), @r"
    haft
    Every call is shown, decided, recorded, and can be taken back.

    anywhere
      esc                   close what is open; then, stop the model
      ctrl-c                stop the model; twice leaves
      ctrl-d                leave, if nothing is typed
      tab                   between typing, questions and the conversation
      pgup pgdn             scroll
      ctrl-f                search the conversation
      ctrl-t                what is to be done: tasks and runs
      ctrl-o                unfold the last call
      ctrl-l                draw anew
      alt-m                 let the wheel scroll, or the mouse select
      ctrl-z                back to the shell; fg comes back

    typing
      enter                 say it; while the model works, with the next results
      alt-enter ctrl-j      a new line
      up down               what was said before
      ctrl-a ctrl-e         to the beginning, to the end
      ctrl-u ctrl-k ctrl-w  cut to the beginning, to the end, a word
      ?                     this, if nothing is typed

    asked about a call
      o                     yes, this once
      t                     try it on a copy of the files, and show what it does
      s                     yes, until the session ends
      a                     yes, always, for a pattern
      r                     no, with a word to the model
      e                     with other arguments
      d                     all of the difference; up and down scroll, esc goes back
      f                     the files of folded directories, where there are any
      esc                   no, and stop the model

    asked by a tool
      up down 1-9           choose
      space                 choose several
      y n                   yes or no
      enter                 next, and done
      ctrl-x                decline

    looking through the conversation
      up down               between calls and children
      enter space           unfold, fold
      /                     search
      a letter              back to typing

    commands
      /help                 the keys and these commands
      /model NAME           ask another model from now on
      /models               the models there are
      /clear                begin a new conversation
      /resume [SESSION]     go on with another conversation
      /undo                 take back the last change that can be taken back
      /cost                 what was used so far
      /quit                 leave










    ── help: up down, any other key closes ─────────────────────────────────────────
    >
    ready                                                  anthropic/claude · chat-1
    ");
}

#[test]
fn an_empty_screen_and_an_end() {
    let mut screen = Screen::scene();
    insta::assert_snapshot!(screen.drawn(60, 10), @r"
    project  /src/plants
    model    anthropic/claude

    Type what is to be done; enter says it.
    What needs your yes is asked here.
    ? shows the keys, ctrl-d leaves.

    ────────────────────────────────────────────────────────────
    > say something   ? for the keys
    ready                              anthropic/claude · chat-1
    ");
    screen.says("go");
    screen.hears(words("Done it."));
    screen.hears(used(150_000));
    screen.hears(ends(End::Turns));
    screen.update(Input::Over(Over::default()));
    insta::assert_snapshot!(screen.drawn(80, 12), @r"
    > go

    Done it.

    ! it was asked as often as it may be. Say something to go on.




    ────────────────────────────────────────────────────────────────────────────────
    > say something   ? for the keys
    ready                      anthropic/claude · 150k/200k (75%) · $0.0123 · chat-1
    ");
}

#[test]
fn no_picture_of_any_size_holds_anything_that_acts() {
    let mut screen = busy();
    let nasty = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}1m\u{202e}evil\r";
    screen.hears(words(nasty));
    screen.hears(begins("n", nasty));
    screen.hears(prints("n", nasty));
    screen.hears(Told::Warning { message: nasty.into() });
    screen.hears(child("k", nasty, nasty));
    screen.hears(within("k", words(nasty)));
    screen.update(Input::Note(crate::tui::talk::Tone::Bad, nasty.into()));
    screen.update(Input::Paste(nasty.into()));
    screen.at(90_000);
    let form = haft_runtime::Form {
        from: nasty.into(),
        message: nasty.into(),
        schema: json!({"properties": {nasty: {"enum": [nasty]}}}),
    };
    screen.update(Input::Fill(9, form));
    for (width, height) in [(40, 10), (41, 11), (80, 24), (120, 40), (200, 100)] {
        let picture = screen.drawn(width, height);
        assert!(!picture.chars().any(|c| (c.is_control() && c != '\n') || c == '\u{202e}'), "{picture:?}");
    }
}
