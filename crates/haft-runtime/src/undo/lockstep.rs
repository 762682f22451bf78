//! Two hafts that change the same files, one of them in another PID namespace or as another user. They take turns at the points
//! where a process may die: each stops there until it is told to go on, and a schedule says who goes on. So every run is the
//! same. Every call that says it succeeded is then in every file, and every other in none, or its error names the file.

use super::bench::{Bench, shown};
use super::interference::observed;
use super::laws::Chance;
use super::*;
use haft_sandbox::layer::stands;
use std::cell::RefCell;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Child, Command, Stdio};
use std::rc::Rc;

/// The files that both change.
const FILES: [&str; 3] = ["a", "b", "c"];
/// What both end every file with, so that each adds its words before it.
const END: &str = "END\n";
/// In another PID namespace, with the same data directory.
const NAMESPACE: [&str; 5] = ["unshare", "--user", "--map-root-user", "--pid", "--fork"];
/// As another user, with a data directory of its own.
const OTHER_USER: [&str; 6] = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"];

/// What a haft does.
#[derive(Debug, Clone)]
enum Order {
    /// Adds a word to every file.
    Add(String),
    /// Takes a call back.
    Undo(CallId),
}

/// What came of it: the call, or why there is none.
type Ended = Result<CallId, String>;

fn carry_out(bench: &Bench, order: &Order) -> Ended {
    let add = |word: &str| {
        let changes: Vec<Change> = FILES
            .map(|name| {
                let path = bench.root().join(name);
                let before = stands(&path).unwrap();
                let text = std::fs::read_to_string(&path).unwrap();
                let content = text.replace(END, &format!("{word}\n{END}")).into_bytes();
                Change::Write { path, content, before, mode: None }
            })
            .into();
        bench.carry_out(&changes)
    };
    let done = match order {
        Order::Add(word) => add(word),
        Order::Undo(call) => bench.undo(call),
    };
    done.map_err(|error| error.message)
}

/// The other haft. By itself it does nothing.
#[test]
fn inside() {
    let Ok(socket) = std::env::var("HAFT_LOCKSTEP") else { return };
    let var = |name: &str| PathBuf::from(std::env::var_os(name).unwrap());
    let stream = UnixStream::connect(socket).unwrap();
    let bench = Bench::open(&var("HAFT_LOCKSTEP_DIR"), &var("HAFT_LOCKSTEP_DATA"), UndoLimits::default());
    let lines = Rc::new(RefCell::new(BufReader::new(stream.try_clone().unwrap())));
    let next = |lines: &RefCell<BufReader<UnixStream>>| {
        let mut line = String::new();
        lines.borrow_mut().read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    };
    loop {
        let line = next(&lines);
        let Some((what, about)) = line.split_once(' ') else { return };
        let order = match what {
            "add" => Order::Add(about.to_owned()),
            _ => Order::Undo(CallId::parse(about).unwrap()),
        };
        let (waiting, mut telling) = (Rc::clone(&lines), stream.try_clone().unwrap());
        let pause = move |_: &str| {
            writeln!(telling, "point").unwrap();
            assert_eq!(next(&waiting), "go");
        };
        let said = match observed(pause, || carry_out(&bench, &order)) {
            Ok(call) => format!("done {}", call.as_str()),
            Err(why) => format!("failed {}", why.replace('\n', " ")),
        };
        writeln!(&stream, "{said}").unwrap();
    }
}

/// The other haft, as this one sees it.
struct Partner {
    child: Child,
    stream: UnixStream,
    lines: BufReader<UnixStream>,
    is_running: bool,
    ended: Option<Ended>,
}

impl Partner {
    /// None, and loudly, where such a process cannot be had.
    fn start(program: &[&str], bench: &Bench, data: &Path) -> Option<Self> {
        let tried = Command::new(program[0]).args(&program[1..]).arg("true").stderr(Stdio::null()).status();
        if !tried.is_ok_and(|status| status.success()) {
            eprintln!("SKIPPED: `{}` is not allowed here", program.join(" "));
            return None;
        }
        let socket = bench.dir.join(format!("{}.socket", program[0]));
        let listener = UnixListener::bind(&socket).unwrap();
        open_to_all(&socket, 0o666);
        let child = Command::new(program[0])
            .args(&program[1..])
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", "undo::lockstep::inside", "--nocapture"])
            .env("HAFT_LOCKSTEP", &socket)
            .env("HAFT_LOCKSTEP_DIR", &bench.dir)
            .env("HAFT_LOCKSTEP_DATA", data)
            .current_dir("/")
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let (stream, _) = listener.accept().unwrap();
        let lines = BufReader::new(stream.try_clone().unwrap());
        Some(Self { child, stream, lines, is_running: false, ended: None })
    }

    fn begin(&mut self, order: &Order) {
        self.is_running = true;
        self.tell(&match order {
            Order::Add(word) => format!("add {word}"),
            Order::Undo(call) => format!("undo {}", call.as_str()),
        });
    }

    /// Tells it something, and waits until it has stopped again.
    fn tell(&mut self, line: &str) {
        writeln!(self.stream, "{line}").unwrap();
        let mut said = String::new();
        self.lines.read_line(&mut said).unwrap();
        self.ended = match said.trim_end().split_once(' ') {
            None => return assert_eq!(said, "point\n"),
            Some(("done", call)) => Some(Ok(CallId::parse(call).unwrap())),
            Some((_, why)) => Some(Err(why.to_owned())),
        };
        self.is_running = false;
    }

    fn go_on(&mut self, points: usize) {
        let mut left = points;
        while self.is_running && left > 0 {
            self.tell("go");
            left -= 1;
        }
    }
}

impl Drop for Partner {
    fn drop(&mut self) {
        // It ends when nobody speaks to it any more.
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
        let _ = self.child.wait();
    }
}

fn open_to_all(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// One word, and what came of the call that was to add it.
#[derive(Debug)]
struct Added {
    word: String,
    ended: Ended,
    is_undone: bool,
}

impl Added {
    fn is_in_its_place(&self, text: &str) -> bool {
        text.lines().any(|line| line == self.word) == (self.ended.is_ok() && !self.is_undone)
    }
}

/// All that two hafts did to some files.
#[derive(Debug, Default)]
struct Story {
    added: Vec<Added>,
    /// What the calls and undos said that failed.
    messages: Vec<String>,
}

impl Story {
    fn note(&mut self, order: &Order, ended: Ended) {
        self.messages.extend(ended.as_ref().err().cloned());
        match order {
            Order::Add(word) => self.added.push(Added { word: word.clone(), ended, is_undone: false }),
            Order::Undo(call) => {
                let of = self.added.iter_mut().find(|added| added.ended.as_ref() == Ok(call)).unwrap();
                of.is_undone |= ended.is_ok();
            }
        }
    }

    /// Whether a conflict says that versions of a file are elsewhere: both changed it again and again, and a call may have
    /// built on what another one took back.
    fn names(&self, file: &Path) -> bool {
        let file = shown(file);
        self.messages.iter().any(|message| {
            message.contains(&format!("{file} could not be taken back"))
                || (message.contains(&format!("{file} changed in the meantime")) && message.contains("an older one is"))
        })
    }
}

/// The next thing to do: mostly to add a word, and sometimes to take back the latest that was added.
fn order(chance: &mut Chance, Story { added, .. }: &Story, who: &str, seed: u64) -> Order {
    let own = added.iter().rev().find(|added| added.word.starts_with(who) && added.ended.is_ok() && !added.is_undone);
    match own.and_then(|own| own.ended.clone().ok()).filter(|_| chance.below(3) == 0) {
        Some(call) => Order::Undo(call),
        None => Order::Add(format!("{who}-{seed}-{}", added.len())),
    }
}

/// One schedule: this haft does three things, one after the other, and the other does its own in between.
fn schedule(bench: &Bench, partner: &Rc<RefCell<Partner>>, seed: u64) {
    for name in FILES {
        std::fs::write(bench.root().join(name), END).unwrap();
    }
    let chance = Rc::new(RefCell::new(Chance(seed)));
    let story = Rc::new(RefCell::new(Story::default()));
    let current: Rc<RefCell<Option<Order>>> = Rc::default();
    // Lets the other go on, and perhaps begin with something.
    let turn = {
        let (partner, chance, story, current) =
            (Rc::clone(partner), Rc::clone(&chance), Rc::clone(&story), Rc::clone(&current));
        move |points: usize| {
            let (mut partner, mut story) = (partner.borrow_mut(), story.borrow_mut());
            if current.borrow().is_none() {
                let order = order(&mut chance.borrow_mut(), &story, "other", seed);
                partner.begin(&order);
                *current.borrow_mut() = Some(order);
            }
            partner.go_on(points);
            if let Some(ended) = partner.ended.take() {
                let order = current.borrow_mut().take().unwrap();
                story.note(&order, ended);
            }
        }
    };
    for _ in 0..3 {
        if chance.borrow_mut().below(2) == 0 {
            let points = chance.borrow_mut().below(12);
            turn(points);
        }
        let order = order(&mut chance.borrow_mut(), &story.borrow(), "this", seed);
        let (turn, chance) = (turn.clone(), Rc::clone(&chance));
        let observe = move |_: &str| {
            let points = chance.borrow_mut().pick(&[0, 0, 0, 0, 1, 3, 20]);
            if points > 0 {
                turn(points);
            }
        };
        let ended = observed(observe, || carry_out(bench, &order));
        story.borrow_mut().note(&order, ended);
    }
    while current.borrow().is_some() {
        turn(usize::MAX);
    }
    for file in FILES.map(|name| bench.root().join(name)) {
        let text = std::fs::read_to_string(&file).unwrap();
        let story = story.borrow();
        for added in &story.added {
            let is_right = added.is_in_its_place(&text) || story.names(&file);
            assert!(is_right, "seed {seed}: {added:?} in {}:\n{text}\n{story:#?}", file.display());
        }
    }
}

fn schedules(program: &[&str], own_data: Option<u32>, seeds: std::ops::Range<u64>) {
    let bench = Bench::new();
    open_to_all(&bench.dir, 0o755);
    open_to_all(&bench.root(), 0o777);
    for name in FILES {
        open_to_all(&bench.file(name, END), 0o666);
    }
    let data = match own_data {
        None => bench.data.clone(),
        Some(user) => {
            let data = bench.dir.join("data");
            std::fs::create_dir(&data).unwrap();
            std::os::unix::fs::chown(&data, Some(user), Some(user)).unwrap();
            data
        }
    };
    let Some(partner) = Partner::start(program, &bench, &data) else { return };
    let partner = Rc::new(RefCell::new(partner));
    for seed in seeds {
        schedule(&bench, &partner, seed);
    }
}

#[test]
fn haft_in_another_pid_namespace_and_this_one_lose_nothing() {
    schedules(&NAMESPACE, None, 0..400);
}

#[test]
fn haft_of_another_user_and_this_one_lose_nothing() {
    schedules(&OTHER_USER, Some(65_534), 0..400);
}
