//! The whole suite: who runs it, in what order, and the table that it prints.

use crate::acts::{self, Act};
use crate::gaps;
use crate::jobs::{JOBS, Job};
use crate::judge::{self, Verdict};
use crate::run::{self, Mode};
use crate::site::{Identity, Site};
use crate::sys::{self, call, int};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Many runs wait rather than work.
const THREADS: usize = 5;
/// Of those that fill memory or disk, or spin.
const HEAVY_THREADS: usize = 2;
/// A user of whom this machine knows nothing.
const NOBODY_HERE: u32 = 54321;

/// One thing to find out.
#[derive(Clone, Copy)]
enum Item {
    Act(&'static Act),
    Job(&'static Job),
}

impl Item {
    fn name(self) -> &'static str {
        match self {
            Self::Act(act) => act.name,
            Self::Job(job) => job.name,
        }
    }

    fn judge(self, who: &Identity) -> Verdict {
        match self {
            Self::Act(act) => judge::judge(who, act),
            Self::Job(job) => job.judge(who),
        }
    }

    fn category(self) -> &'static str {
        match self {
            Self::Act(act) => act.category(),
            Self::Job(_) => "must work",
        }
    }
}

struct Found {
    who: usize,
    item: Item,
    verdict: Verdict,
}

pub(crate) fn run(haft: &Path, chosen: &[&str]) -> ExitCode {
    let wanted = |item: &Item| chosen.is_empty() || chosen.iter().any(|word| item.name().contains(word));
    let items: Vec<Item> = acts::all().map(Item::Act).chain(JOBS.iter().map(Item::Job)).filter(wanted).collect();
    if items.is_empty() {
        println!("no act has such a name");
        return ExitCode::SUCCESS;
    }
    shut_the_doors();
    // Another program that speaks the same flags can be judged by the same acts.
    let other = std::env::var_os("HAFT_ESCAPES_PROGRAM").map(PathBuf::from);
    let scene = match Scene::new(other.as_deref().unwrap_or(haft)) {
        Ok(scene) => scene,
        Err(error) => {
            println!("the scene cannot be set: {error}");
            return ExitCode::FAILURE;
        }
    };
    if let Err(verdict) = scene.probe() {
        return verdict;
    }
    let found = scene.find_out(&items);
    scene.report(&found)
}

/// Nothing that this process was given may leak into a run and be taken for a hole; and the low numbers
/// are taken, so that a descriptor put there for a run replaces nothing of the standard library's.
fn shut_the_doors() {
    let _ = call(libc::SYS_close_range, &[3, usize::from(u16::MAX), 4]);
    for _ in 0..16 {
        let _ = sys::open("/dev/null", libc::O_RDONLY | libc::O_CLOEXEC);
    }
}

struct Scene {
    dir: PathBuf,
    people: Vec<Identity>,
    /// Whether the machine has what full confinement needs.
    full: bool,
}

impl Scene {
    fn new(haft: &Path) -> std::io::Result<Self> {
        let place = if Path::new("/var/tmp").is_dir() { PathBuf::from("/var/tmp") } else { std::env::temp_dir() };
        let dir = place.join(format!("haft-escapes-{}", std::process::id()));
        let (me, group) = (call(libc::SYS_geteuid, &[])? as u32, call(libc::SYS_getegid, &[])? as u32);
        let mut people = vec![identity(&dir, if me == 0 { "root" } else { "user" }, me, group, haft)?];
        if me == 0 {
            people.push(identity(&dir, "user", NOBODY_HERE, NOBODY_HERE, haft)?);
        }
        Ok(Self { dir, people, full: namespaces() })
    }

    /// Whether anything can be confined at all.
    fn probe(&self) -> Result<(), ExitCode> {
        for who in &self.people {
            let site = Site::new(who, acts::Prop::None).map_err(|error| {
                println!("no site for {}: {error}", who.name);
                ExitCode::FAILURE
            })?;
            let ran = run::script(who, &site, &[], "echo ready", Mode::Confined);
            if ran.code == Some(0) && ran.stdout == "ready\n" {
                continue;
            }
            println!("{} cannot confine as {} ({:?}): {}", who.haft.display(), who.name, ran.code, ran.stderr.trim());
            if !self.full {
                println!("skipped: this machine gives no user namespaces, and haft refuses to run with less");
                return Err(ExitCode::SUCCESS);
            }
            return Err(ExitCode::FAILURE);
        }
        Ok(())
    }

    fn find_out(&self, items: &[Item]) -> Vec<Found> {
        // What is slow goes first, so that nobody waits for it at the end.
        let mut queue: Vec<(usize, Item)> =
            (0..self.people.len()).flat_map(|who| items.iter().map(move |item| (who, *item))).collect();
        queue.sort_by_key(|(_, item)| !matches!(item, Item::Act(act) if act.heavy || act.name.starts_with("limits")));
        let (next, next_heavy, found) = (AtomicUsize::new(0), AtomicUsize::new(0), Mutex::new(Vec::new()));
        let light: Vec<(usize, Item)> = queue.iter().filter(|(_, item)| !is_heavy(*item)).copied().collect();
        let weighty: Vec<(usize, Item)> = queue.into_iter().filter(|(_, item)| is_heavy(*item)).collect();
        let add = |who: usize, item: Item| {
            let verdict = item.judge(&self.people[who]);
            if let Ok(mut found) = found.lock() {
                found.push(Found { who, item, verdict });
            }
        };
        let work = |list: &[(usize, Item)], next: &AtomicUsize| {
            while let Some((who, item)) = list.get(next.fetch_add(1, Ordering::Relaxed)) {
                add(*who, *item);
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..HEAVY_THREADS {
                scope.spawn(|| work(&weighty, &next_heavy));
            }
            for _ in 0..THREADS {
                scope.spawn(|| work(&light, &next));
            }
        });
        found.into_inner().unwrap_or_default()
    }

    fn report(&self, found: &[Found]) -> ExitCode {
        println!("\nescape attempts stopped, of those that succeed without confinement\n");
        self.table(found);
        self.list("\nnot applicable here", found, |verdict| matches!(verdict, Verdict::Inapplicable(_)));
        for (name, reason) in gaps::KNOWN {
            println!("\nknown gap {name}: {reason}");
            let closed = |one: &&Found| one.item.name() == *name && one.verdict == Verdict::Blocked;
            if found.iter().any(|one| closed(&one)) {
                println!("  it was stopped here");
            }
        }
        let bad = |one: &&Found| {
            matches!(one.verdict, Verdict::Out(_) | Verdict::Broken(_)) && gaps::reason(one.item.name()).is_none()
        };
        let count = found.iter().filter(bad).count();
        self.list("\nFAILED", found, |verdict| matches!(verdict, Verdict::Out(_) | Verdict::Broken(_)));
        if count > 0 && !self.full {
            println!("\nthis machine gives no user namespaces: the table is for a lower level, and decides nothing");
            return ExitCode::SUCCESS;
        }
        if count > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
    }

    fn table(&self, found: &[Found]) {
        let mut order: Vec<&str> = acts::all().map(Act::category).collect();
        order.dedup();
        order.push("must work");
        let mut counts: BTreeMap<(&str, usize), (usize, usize)> = BTreeMap::new();
        for one in found {
            let valid = !matches!(one.verdict, Verdict::Inapplicable(_));
            for category in [one.item.category(), if matches!(one.item, Item::Act(_)) { "all" } else { "jobs" }] {
                let count = counts.entry((category, one.who)).or_default();
                count.0 += usize::from(one.verdict == Verdict::Blocked);
                count.1 += usize::from(valid);
            }
        }
        let heads: String = self.people.iter().map(|who| format!("{:>12}", who.name)).collect();
        println!("{:<14}{heads}", "category");
        order.insert(order.len() - 1, "all");
        for category in order {
            let cell = |who| counts.get(&(category, who)).map_or("-".to_owned(), |(good, all)| format!("{good}/{all}"));
            let cells: String = (0..self.people.len()).map(|who| format!("{:>12}", cell(who))).collect();
            println!("{category:<14}{cells}");
        }
    }

    fn list(&self, title: &str, found: &[Found], which: impl Fn(&Verdict) -> bool) {
        let mut lines: Vec<String> = found.iter().filter(|one| which(&one.verdict)).map(|one| self.line(one)).collect();
        lines.sort();
        if !lines.is_empty() {
            println!("{title} ({})\n  {}", lines.len(), lines.join("\n  "));
        }
    }

    fn line(&self, one: &Found) -> String {
        let (word, why) = match &one.verdict {
            Verdict::Blocked => ("blocked", ""),
            Verdict::Out(why) => ("out", why.as_str()),
            Verdict::Inapplicable(why) => ("n/a", why.as_str()),
            Verdict::Broken(why) => ("broken", why.as_str()),
        };
        let known = if gaps::reason(one.item.name()).is_some() { " (known)" } else { "" };
        format!("{:<32}{:<6}{word}{known}: {why}", one.item.name(), self.people[one.who].name)
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

fn is_heavy(item: Item) -> bool {
    matches!(item, Item::Act(act) if act.heavy)
}

/// Somebody with a directory, and copies of both programs that it may read.
fn identity(dir: &Path, name: &'static str, uid: u32, gid: u32, haft: &Path) -> std::io::Result<Identity> {
    let base = dir.join(name);
    let tools = base.join("tools");
    fs::create_dir_all(&tools)?;
    let (attacker, confiner) = (tools.join("attacker"), base.join("haft"));
    for (from, to) in [(std::env::current_exe()?.as_path(), &attacker), (haft, &confiner)] {
        fs::copy(from, to)?;
        fs::set_permissions(to, fs::Permissions::from_mode(0o755))?;
    }
    for path in [dir, &base, &tools] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755))?;
    }
    if call(libc::SYS_geteuid, &[])? == 0 {
        std::os::unix::fs::chown(&base, Some(uid), Some(gid))?;
    }
    Ok(Identity { name, uid, gid, base, haft: confiner, attacker })
}

/// Whether a user namespace with mounts of its own can be had, as [`NOBODY_HERE`] or as we are.
fn namespaces() -> bool {
    let probe = || {
        let _ = call(libc::SYS_setresuid, &[NOBODY_HERE as usize; 3]);
        let flags = libc::CLONE_NEWUSER | libc::CLONE_NEWNS;
        i32::from(call(libc::SYS_unshare, &[int(flags)]).is_err())
    };
    sys::fork(probe).and_then(sys::wait).is_ok_and(|code| code == 0)
}
