//! The terminal itself: held while the screen is shown, and given back whatever happens. Two threads serve it: one waits for
//! keys, one draws. Nothing turns while nothing moves.

use super::screen::{Input, Screen, Wish};
use super::talk::Tone;
use super::view::View;
use crate::style;
use haft_core::CallError;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{self, DisableBracketedPaste, EnableBracketedPaste, Event, MouseEventKind};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use std::io::{Stdout, Write, stdout};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// The screen is drawn at most so often.
const FRAME: Duration = Duration::from_millis(30);
/// What spins moves so often.
const SPIN: Duration = Duration::from_millis(100);
/// How far the wheel scrolls.
const WHEEL: isize = 3;
/// How much is taken in before it is drawn.
const TOGETHER: usize = 512;

/// Whether the terminal is held. Panics of any thread have to give it back, too.
static HELD: AtomicBool = AtomicBool::new(false);

/// The screen, and the threads that serve it.
pub(super) struct Shell {
    inputs: Sender<Input>,
    drawing: JoinHandle<std::io::Result<()>>,
}

impl Shell {
    /// Takes the terminal and shows the screen. What somebody said already is said at once.
    pub(super) fn open(
        screen: Screen,
        prompt: Option<String>,
        colours: bool,
    ) -> Result<(Self, UnboundedReceiver<Wish>), CallError> {
        let fail = |error: std::io::Error| CallError::internal(format!("the terminal cannot be taken: {error}"));
        give_back_on_panic();
        hold().map_err(fail)?;
        let (inputs, taken) = channel();
        let (wishes, asked_for) = unbounded_channel();
        let diverted = inputs.clone();
        style::divert(Some(Box::new(move |line| {
            let _ = diverted.send(Input::Note(Tone::Care, line));
        })));
        let keys = inputs.clone();
        // It waits in a read that nothing ends but a key; it ends with the process.
        let started = std::thread::Builder::new().name("keys".to_owned()).spawn(move || read_keys(&keys));
        let drawing = started.and_then(|_| {
            std::thread::Builder::new()
                .name("screen".to_owned())
                .spawn(move || Shown { screen, wishes, view: View::new(colours) }.run(prompt, &taken))
        });
        match drawing {
            Ok(drawing) => Ok((Self { inputs, drawing }, asked_for)),
            Err(error) => {
                give_back();
                Err(fail(error))
            }
        }
    }

    /// The way to tell the screen something.
    pub(super) fn inputs(&self) -> Sender<Input> {
        self.inputs.clone()
    }

    /// Waits until the terminal is as it was.
    pub(super) fn close(self) -> Result<(), CallError> {
        let _ = self.inputs.send(Input::Leave);
        let drawn = self.drawing.join();
        give_back();
        match drawn {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(CallError::internal(format!("the terminal cannot be drawn on: {error}"))),
            Err(_) => Err(CallError::internal("the screen broke").hint("`haft tui --resume` goes on from there")),
        }
    }
}

fn hold() -> std::io::Result<()> {
    HELD.store(true, Ordering::SeqCst);
    enable_raw_mode()?;
    execute!(stdout(), EnterAlternateScreen, EnableBracketedPaste)?;
    wheel(true)
}

/// Gives the terminal back, once. There is nobody to tell if that fails.
fn give_back() {
    if HELD.swap(false, Ordering::SeqCst) {
        let _ = wheel(false);
        let _ = execute!(stdout(), DisableBracketedPaste, LeaveAlternateScreen, Show);
        let _ = disable_raw_mode();
        style::divert(None);
    }
}

/// Whether the wheel is told about. Only presses are, not every move of the mouse.
fn wheel(on: bool) -> std::io::Result<()> {
    let sign = if on { 'h' } else { 'l' };
    let mut out = stdout().lock();
    write!(out, "\x1b[?1000{sign}\x1b[?1006{sign}")?;
    out.flush()
}

fn give_back_on_panic() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        give_back();
        usual(info);
    }));
}

fn read_keys(inputs: &Sender<Input>) {
    loop {
        let input = match event::read() {
            Ok(Event::Key(key)) => Input::Key(key),
            Ok(Event::Paste(text)) => Input::Paste(text),
            Ok(Event::Resize(..)) => Input::Resize,
            Ok(Event::Mouse(mouse)) => match mouse.kind {
                MouseEventKind::ScrollUp => Input::Wheel(-WHEEL),
                MouseEventKind::ScrollDown => Input::Wheel(WHEEL),
                _ => continue,
            },
            Ok(_) => continue,
            Err(_) => Input::Leave,
        };
        let gone = matches!(input, Input::Leave);
        if inputs.send(input).is_err() || gone {
            return;
        }
    }
}

/// The screen as it is shown.
struct Shown {
    screen: Screen,
    view: View,
    wishes: UnboundedSender<Wish>,
}

impl Shown {
    fn run(mut self, prompt: Option<String>, inputs: &Receiver<Input>) -> std::io::Result<()> {
        let mut terminal = Terminal::new(CrosstermBackend::new(stdout()))?;
        let begun = Instant::now();
        let mut drawn: Option<Instant> = None;
        let mut stale = true;
        if let Some(prompt) = prompt {
            let wishes = self.screen.say(prompt);
            self.wish(wishes, &mut terminal)?;
        }
        loop {
            let rested = drawn.is_none_or(|drawn| drawn.elapsed() >= FRAME);
            if stale && rested {
                terminal.draw(|frame| self.view.draw(&mut self.screen, frame))?;
                (drawn, stale) = (Some(Instant::now()), false);
            }
            let first = wait(inputs, stale, self.screen.spins());
            let now = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
            self.screen.update(Input::Tick(now));
            let first = match first {
                Ok(first) => first,
                Err(RecvTimeoutError::Timeout) => {
                    stale = true;
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) => break,
            };
            stale = true;
            for input in std::iter::once(first).chain(inputs.try_iter().take(TOGETHER)) {
                let wishes = self.screen.update(input);
                if !self.wish(wishes, &mut terminal)? {
                    give_back();
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Does what is the terminal's own, and passes on the rest. False if this is the end.
    fn wish(&mut self, wishes: Vec<Wish>, terminal: &mut Terminal<CrosstermBackend<Stdout>>) -> std::io::Result<bool> {
        for wish in wishes {
            match wish {
                Wish::Wheel(on) => wheel(on)?,
                Wish::Redraw => terminal.clear()?,
                Wish::Suspend => {
                    give_back();
                    // It goes on here when the shell lets it.
                    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::TSTP);
                    hold()?;
                    wheel(!self.screen.look.selects)?;
                    terminal.clear()?;
                }
                wish => {
                    let last = wish == Wish::Quit;
                    // Nobody does anything any more: then this is the end as well.
                    if self.wishes.send(wish).is_err() || last {
                        return Ok(false);
                    }
                }
            }
        }
        Ok(true)
    }
}

/// The next thing that happens. It is waited for until the picture has to change by itself, or for ever.
fn wait(inputs: &Receiver<Input>, stale: bool, spins: bool) -> Result<Input, RecvTimeoutError> {
    match (stale, spins) {
        (true, _) => inputs.recv_timeout(FRAME),
        (false, true) => inputs.recv_timeout(SPIN),
        (false, false) => inputs.recv().map_err(|_| RecvTimeoutError::Disconnected),
    }
}
