//! The browsers of all sessions: who has one, whose turn it is, and which one has to go.

use super::launch;
use super::{Browser, BrowserSettings};
use crate::scene::Scene;
use haft_core::web::Target;
use haft_core::{CallError, SessionId, ToolName};
use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};
use tokio::sync::OwnedMutexGuard;

/// The tool whose rules a browser is started under: what leads to a page decides whom the page may reach.
const LEADS: &str = "browser.navigate";

/// The browsers of all sessions.
#[derive(Debug, Default)]
pub struct Browsers {
    settings: BrowserSettings,
    pool: Arc<Pool>,
}

#[derive(Debug, Default)]
struct Pool {
    seats: Mutex<Seats>,
    /// Rung when there is a browser more.
    more: Condvar,
}

#[derive(Debug, Default)]
struct Seats {
    all: HashMap<SessionId, Seat>,
    /// Whether somebody sees to it that idle browsers go.
    swept: bool,
}

/// What one session has.
#[derive(Debug)]
struct Seat {
    turn: Arc<tokio::sync::Mutex<()>>,
    browser: Option<Arc<Browser>>,
    used: Instant,
}

/// A browser for the time of one call.
pub(crate) struct Lent {
    pub(crate) browser: Arc<Browser>,
    /// What is to be said about it.
    pub(crate) note: Option<String>,
    pool: Arc<Pool>,
    session: SessionId,
    _turn: OwnedMutexGuard<()>,
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some(seat) = self.pool.seats().all.get_mut(&self.session) {
            seat.used = Instant::now();
        }
    }
}

impl Seat {
    /// Whether no call holds it.
    fn is_free(&self) -> bool {
        self.turn.try_lock().is_ok()
    }
}

impl Pool {
    fn seats(&self) -> MutexGuard<'_, Seats> {
        self.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Browsers {
    /// None is started before it is needed.
    pub fn new(settings: BrowserSettings) -> Self {
        Self { settings, pool: Arc::default() }
    }

    /// The browser of the call's session, and the turn to use it.
    pub(crate) async fn lend(&self, scene: &Scene) -> Result<Lent, CallError> {
        self.lent(scene, None).await
    }

    /// The same for opening an address, and one is started if there is none, or if the one there is was started under
    /// other rules, or has been where it could have met somebody who may not reach that address.
    pub(crate) async fn open(&self, scene: &Scene, to: &Target) -> Result<Lent, CallError> {
        self.lent(scene, Some(to)).await
    }

    async fn lent(&self, scene: &Scene, to: Option<&Target>) -> Result<Lent, CallError> {
        let call = scene.call();
        let session = call.session.clone();
        let turn = {
            let mut seats = self.pool.seats();
            let seat = || Seat { turn: Arc::default(), browser: None, used: Instant::now() };
            Arc::clone(&seats.all.entry(session.clone()).or_insert_with(seat).turn)
        };
        let turn = turn.lock_owned().await;
        let leads = ToolName::new(LEADS).map_err(|error| CallError::internal(error.to_string()))?;
        let rules = scene.web().rules(&call.caller, &leads);
        let known = self.peek(&session).filter(|browser| browser.wire.is_open());
        let shy = |browser: &Browser| to.is_some_and(|target| !browser.can_show(target));
        let mut note = None;
        let browser = match known {
            Some(browser) if browser.rules == rules && !shy(&browser) => browser,
            Some(_) if to.is_none() => {
                return Err(CallError::conflict("this session's browser was started under other network rules")
                    .hint("browser.navigate starts one under yours"));
            }
            None if to.is_none() => {
                self.forget(&session);
                return Err(no_page());
            }
            known => {
                note = known.filter(|browser| shy(browser)).and(to).map(|to| {
                    let to = to.authority();
                    format!("{to} is a service of your own, so a browser that has seen nothing else was started for it")
                });
                self.forget(&session);
                self.make_room(&session)?;
                let browser = Arc::new(launch::start(scene, &self.settings, rules).await?);
                self.seat(&session, &browser);
                browser
            }
        };
        browser.notes.turn_to(&call.id);
        Ok(Lent { browser, note, pool: Arc::clone(&self.pool), session, _turn: turn })
    }

    /// The browser of a session, without waiting for a turn.
    pub(super) fn peek(&self, session: &SessionId) -> Option<Arc<Browser>> {
        self.pool.seats().all.get(session).and_then(|seat| seat.browser.clone())
    }

    /// Ends a session's browser. Returns whether there was one.
    pub fn end_session(&self, session: &SessionId) -> bool {
        let ended = self.pool.seats().all.remove(session).and_then(|seat| seat.browser);
        ended.inspect(|browser| browser.end()).is_some()
    }

    fn forget(&self, session: &SessionId) {
        let ended = self.pool.seats().all.get_mut(session).and_then(|seat| seat.browser.take());
        if let Some(browser) = ended {
            browser.end();
        }
    }

    /// Ends the browser that has been idle longest, where there are as many as may be.
    fn make_room(&self, but: &SessionId) -> Result<(), CallError> {
        let mut seats = self.pool.seats();
        seats.all.retain(|session, seat| session == but || seat.browser.is_some() || !seat.is_free());
        let running = seats.all.values().filter(|seat| seat.browser.is_some()).count();
        if running < self.settings.most {
            return Ok(());
        }
        let free = seats.all.iter().filter(|(_, seat)| seat.browser.is_some() && seat.is_free());
        let oldest = free.min_by_key(|(_, seat)| seat.used).map(|(session, _)| session.clone());
        let ended = oldest.and_then(|session| seats.all.remove(&session)).and_then(|seat| seat.browser);
        drop(seats);
        let browser = ended.ok_or_else(|| {
            CallError::failed(format!("{running} browsers are in use, and there may be no more"))
                .hint("try again later; `browser.max` in the configuration says how many there may be")
        })?;
        browser.end();
        Ok(())
    }

    fn seat(&self, session: &SessionId, browser: &Arc<Browser>) {
        let mut seats = self.pool.seats();
        if let Some(seat) = seats.all.get_mut(session) {
            (seat.browser, seat.used) = (Some(Arc::clone(browser)), Instant::now());
        } else {
            // The session ended while its browser started.
            browser.end();
        }
        if !seats.swept {
            let (pool, idle) = (Arc::downgrade(&self.pool), self.settings.idle);
            let sweep = std::thread::Builder::new().name("haft-browser-idle".to_owned());
            // Without the thread, browsers stay until their session or haft ends.
            seats.swept = sweep.spawn(move || sweep_all(&pool, idle)).is_ok();
        }
        self.pool.more.notify_all();
    }
}

impl Drop for Browsers {
    fn drop(&mut self) {
        let seats: Vec<Seat> = self.pool.seats().all.drain().map(|(_, seat)| seat).collect();
        seats.iter().filter_map(|seat| seat.browser.as_ref()).for_each(|browser| browser.end());
        self.pool.more.notify_all();
    }
}

/// Ends browsers that nobody has used for a while, until there is none left.
fn sweep_all(pool: &Weak<Pool>, idle: Duration) {
    while let Some(pool) = pool.upgrade() {
        let mut seats = pool.seats();
        let over = |seat: &Seat| seat.browser.is_some() && seat.used.elapsed() >= idle && seat.is_free();
        let late: Vec<SessionId> =
            seats.all.iter().filter(|(_, seat)| over(seat)).map(|(session, _)| session.clone()).collect();
        let ended: Vec<Seat> = late.iter().filter_map(|session| seats.all.remove(session)).collect();
        let left = seats.all.values().filter(|seat| seat.browser.is_some());
        let next = left.map(|seat| idle.saturating_sub(seat.used.elapsed())).min();
        let Some(next) = next else {
            seats.swept = false;
            drop(seats);
            end(&ended);
            return;
        };
        drop(seats);
        end(&ended);
        // One that is in use is looked at again after a moment.
        let next = next.max(Duration::from_millis(100));
        drop(pool.more.wait_timeout(pool.seats(), next));
    }
}

fn end(seats: &[Seat]) {
    seats.iter().filter_map(|seat| seat.browser.as_ref()).for_each(|browser| browser.end());
}

/// What is said where there is no page to look at.
pub(super) fn no_page() -> CallError {
    CallError::conflict("no page is open in this session").hint(
        "browser.navigate opens one, for as long as this haft runs: with `haft call` that is one call; `haft batch`, \
         `haft mcp` and `haft serve` go on",
    )
}
