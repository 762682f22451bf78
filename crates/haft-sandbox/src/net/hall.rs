//! What all connections through one gate share: the rules, the report, and the way to end them all.

use super::Limits;
use super::allowed::Allowed;
use super::dial::{NoWay, dial};
use super::report::{Contact, Report, Told, Via};
use super::splice::{Inlet, Outlet, Traffic, exchange};
use haft_core::host::Host;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

#[derive(Debug)]
pub(super) struct Hall {
    pub(super) rules: Allowed,
    pub(super) limits: Limits,
    /// Wakes the door: a place is free, or it is time to close.
    bell: UnixStream,
    told: Option<Told>,
    state: Mutex<State>,
    left: Condvar,
}

#[derive(Debug, Default)]
struct State {
    closing: bool,
    entered: u64,
    inside: BTreeMap<u64, Guest>,
    report: Report,
}

/// What has to be known of a connection to end it from outside.
#[derive(Debug, Default)]
struct Guest {
    streams: Vec<Arc<TcpStream>>,
    /// Whom it is about to reach.
    dialling: Option<(String, u16, Via)>,
}

impl Hall {
    pub(super) fn new(rules: Allowed, limits: Limits, bell: UnixStream, told: Option<Told>) -> Self {
        Self { rules, limits, bell, told, state: Mutex::default(), left: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing is left half done under this lock, whoever panicked.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_closing(&self) -> bool {
        self.state().closing
    }

    pub(super) fn has_room(&self) -> bool {
        self.state().inside.len() < self.limits.connections
    }

    /// Takes a connection in, unless it is too late for that.
    pub(super) fn enter(self: &Arc<Self>, stream: TcpStream, via: Via) -> Option<Visit> {
        let mut state = self.state();
        if state.closing {
            return None;
        }
        state.entered += 1;
        let (id, near) = (state.entered, Arc::new(stream));
        state.inside.insert(id, Guest { streams: vec![Arc::clone(&near)], dialling: None });
        drop(state);
        Some(Visit { hall: Arc::clone(self), id, near, via })
    }

    pub(super) fn note(&self, contact: Contact) {
        if let Some(told) = &self.told {
            told.tell(&contact);
        }
        self.state().report.note(contact);
    }

    pub(super) fn contacts(&self) -> Vec<Contact> {
        self.state().report.contacts()
    }

    /// Lets nobody in any more, and hangs up on all who are inside.
    pub(super) fn close(&self) {
        let mut state = self.state();
        state.closing = true;
        for stream in state.inside.values().flat_map(|guest| &guest.streams) {
            // An error says that it is down already.
            let _ = stream.shutdown(Shutdown::Both);
        }
        drop(state);
        self.ring();
    }

    /// Waits until all have left. Who is still resolving or connecting then cannot be hurried; it is noted
    /// as it stands, and ends by itself without having carried a byte.
    pub(super) fn wait(&self, patience: Duration) {
        let busy = |state: &mut State| !state.inside.is_empty();
        let waited = self.left.wait_timeout_while(self.state(), patience, busy);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
        let late: Vec<_> = state.inside.values_mut().filter_map(|guest| guest.dialling.take()).collect();
        for (host, port, how) in late {
            let contact = contact((host, port), how, Some(&NoWay::Closing), Traffic::default());
            if let Some(told) = &self.told {
                told.tell(&contact);
            }
            state.report.note(contact);
        }
    }

    fn leave(&self, id: u64) {
        self.state().inside.remove(&id);
        self.left.notify_all();
        self.ring();
    }

    fn ring(&self) {
        // A full pipe rings already; a broken one has nobody at the other end.
        let _ = (&self.bell).write(&[1]);
    }
}

/// One connection from the confined program. It leaves when dropped.
#[derive(Debug)]
pub(super) struct Visit {
    pub(super) hall: Arc<Hall>,
    pub(super) near: Arc<TcpStream>,
    id: u64,
    via: Via,
}

impl Visit {
    /// Dials, if the rules allow it, and notes it where nothing comes of it.
    pub(super) fn reach(&self, host: &Host, port: u16) -> Result<Reached<'_>, NoWay> {
        let hall = &self.hall;
        let asked = (host.to_string(), port);
        self.tell(Some((asked.0.clone(), port, self.via)));
        let dialled = dial(&hall.rules, (host, port), hall.limits.dial, || !hall.is_closing());
        self.tell(None);
        let joined = dialled.and_then(|far| self.join(far));
        joined.map(|far| Reached { visit: self, asked: asked.clone(), far }).inspect_err(|no| {
            hall.note(contact(asked, self.via, Some(no), Traffic::default()));
        })
    }

    fn tell(&self, dialling: Option<(String, u16, Via)>) {
        if let Some(guest) = self.hall.state().inside.get_mut(&self.id) {
            guest.dialling = dialling;
        }
    }

    /// Makes the far end one that closing the gate ends as well.
    fn join(&self, far: TcpStream) -> Result<Arc<TcpStream>, NoWay> {
        let far = Arc::new(far);
        let mut state = self.hall.state();
        let open = !state.closing;
        let guest = state.inside.get_mut(&self.id).filter(|_| open).ok_or(NoWay::Closing)?;
        guest.streams.push(Arc::clone(&far));
        Ok(far)
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        self.hall.leave(self.id);
    }
}

/// A visit with both ends open.
#[derive(Debug)]
pub(super) struct Reached<'a> {
    visit: &'a Visit,
    asked: (String, u16),
    far: Arc<TcpStream>,
}

impl Reached<'_> {
    /// Carries bytes until both ends are done, and notes how many.
    pub(super) fn exchange(self, upload: impl FnOnce(&mut Inlet<'_>, &mut Outlet<'_>) -> io::Result<()>) {
        let traffic = exchange(&self.visit.near, &self.far, upload);
        self.visit.hall.note(contact(self.asked, self.visit.via, None, traffic));
    }
}

fn contact((host, port): (String, u16), how: Via, no: Option<&NoWay>, traffic: Traffic) -> Contact {
    let allowed = !no.is_some_and(NoWay::is_refusal);
    let Traffic { sent, received } = traffic;
    Contact { host, port, allowed, reason: no.map(ToString::to_string), sent, received, how, times: 1 }
}
