//! Whether an act came out. The attacker's word counts against the sandbox, never for it.

use crate::acts::{Act, Sight};
use crate::attack::{BEGUN, MARK};
use crate::run::{self, Mode, Ran};
use crate::site::{Identity, Site};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// What became of an act.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    /// It works without a sandbox and not within.
    Blocked,
    /// It works within.
    Out(String),
    /// It does not even work without a sandbox, here.
    Inapplicable(String),
    /// It was not tried as meant.
    Broken(String),
}

/// Tries an act without and with confinement.
pub(crate) fn judge(who: &Identity, act: &Act) -> Verdict {
    match once(who, act, Mode::Free) {
        Ok((ran, seen)) => {
            let valid = if act.sight == Sight::Answer { ran.code == Some(0) } else { seen.contains(&act.sight) };
            if !valid {
                return Verdict::Inapplicable(format!("{:?}, saw {seen:?}, {}", ran.code, last(&ran)));
            }
        }
        Err(error) => return Verdict::Broken(format!("no site: {error}")),
    }
    let verdicts = (0..act.rounds).map(|_| confined(who, act));
    verdicts.fold(Verdict::Blocked, |worst, verdict| if verdict == Verdict::Blocked { worst } else { verdict })
}

fn confined(who: &Identity, act: &Act) -> Verdict {
    let (ran, seen) = match once(who, act, Mode::Confined) {
        Ok(outcome) => outcome,
        Err(error) => return Verdict::Broken(format!("no site: {error}")),
    };
    if !seen.is_empty() {
        return Verdict::Out(format!("{seen:?} outside; {}", last(&ran)));
    }
    if !ran.stdout.contains(BEGUN) {
        // A list of hosts may be refused as such; nothing else is a reason not to start.
        if act.names_hosts() && matches!(ran.code, Some(2 | 125)) {
            return Verdict::Blocked;
        }
        return Verdict::Broken(format!("did not start ({:?}): {}", ran.code, ran.stderr.trim()));
    }
    match ran.code {
        None => Verdict::Out("never ended".to_owned()),
        Some(0) if act.believed => Verdict::Out(last(&ran)),
        Some(2 | 126 | 127) => Verdict::Broken(last(&ran)),
        Some(125) if act.believed => Verdict::Broken(format!("was not confined: {}", ran.stderr.trim())),
        Some(_) => Verdict::Blocked,
    }
}

fn once(who: &Identity, act: &Act, mode: Mode) -> std::io::Result<(Ran, Vec<Sight>)> {
    let mut site = Site::new(who, act.prop)?;
    let ran = run::attempt(who, &mut site, act, mode);
    if [Sight::Victim, Sight::Lingers].contains(&act.sight) {
        // A signal takes a moment to be felt, and a process a moment to go.
        std::thread::sleep(Duration::from_millis(100));
    }
    let seen = look(&site, act, &ran);
    Ok((ran, seen))
}

/// All oracles, whatever the act.
fn look(site: &Site, act: &Act, ran: &Ran) -> Vec<Sight> {
    let told = ran.stdout.contains(MARK) || ran.stderr.contains(MARK);
    let reached = site.is_reached() || site.props.entered.load(Ordering::Relaxed);
    let sights = [
        (told, Sight::Secret),
        (site.is_changed(), Sight::Changed),
        (site.lost_protection(), Sight::Protected),
        (act.is_dry() && site.is_kept(), Sight::Kept),
        (reached, Sight::Reached),
        (site.props.is_harmed(), Sight::Victim),
        (site.lingering(), Sight::Lingers),
    ];
    sights.into_iter().filter(|(seen, _)| *seen).map(|(_, sight)| sight).collect()
}

/// The last thing that the attacker said.
fn last(ran: &Ran) -> String {
    let line = ran.stdout.lines().rev().find(|line| !line.is_empty()).unwrap_or_default();
    let line = if line.is_empty() { ran.stderr.lines().last().unwrap_or_default() } else { line };
    line.chars().take(200).collect()
}
