//! The person at the screen, as somebody who can be asked.

use super::ask::Ticket;
use super::screen::Input;
use crate::started_by::unless_agent;
use haft_core::approval::{Decider, DeciderIdentity};
use haft_runtime::{Approver, BoxFuture, Form, Question, Said, Written};
use std::collections::HashMap;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::oneshot;

/// Who waits for what.
enum Waits {
    Said(oneshot::Sender<Said>),
    Written(oneshot::Sender<Written>),
}

/// The person. Cheap to clone.
#[derive(Clone)]
pub(super) struct Person {
    screen: Sender<Input>,
    waiting: Arc<Mutex<(Ticket, HashMap<Ticket, Waits>)>>,
}

/// A question that is withdrawn if nobody waits for its answer any more.
struct Open<'p>(&'p Person, Ticket);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        if self.0.take(self.1).is_some() {
            // Whoever has no screen sees no question either.
            let _ = self.0.screen.send(Input::Withdrawn(self.1));
        }
    }
}

impl Person {
    /// The one who looks at that screen.
    pub(super) fn new(screen: Sender<Input>) -> Self {
        Self { screen, waiting: Arc::default() }
    }

    /// Gives an answer to whoever waits for it.
    pub(super) fn said(&self, ticket: Ticket, said: Said) {
        if let Some(Waits::Said(waits)) = self.take(ticket) {
            let _ = waits.send(said);
        }
    }

    /// Gives a form back to whoever waits for it.
    pub(super) fn written(&self, ticket: Ticket, written: Written) {
        if let Some(Waits::Written(waits)) = self.take(ticket) {
            let _ = waits.send(written);
        }
    }

    fn take(&self, ticket: Ticket) -> Option<Waits> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).1.remove(&ticket)
    }

    fn open(&self, waits: Waits) -> Open<'_> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.0 += 1;
        let ticket = waiting.0;
        waiting.1.insert(ticket, waits);
        Open(self, ticket)
    }
}

impl Approver for Person {
    fn decider(&self) -> Decider {
        unless_agent(DeciderIdentity::Terminal)
    }

    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Said> {
        Box::pin(async move {
            let (answer, said) = oneshot::channel();
            let open = self.open(Waits::Said(answer));
            match self.screen.send(Input::Ask(open.1, Box::new(question.clone()))) {
                Ok(()) => said.await.unwrap_or(Said::Nobody),
                Err(_) => Said::Nobody,
            }
        })
    }

    fn elicit<'a>(&'a self, form: &'a Form) -> BoxFuture<'a, Written> {
        Box::pin(async move {
            let (answer, written) = oneshot::channel();
            let open = self.open(Waits::Written(answer));
            match self.screen.send(Input::Fill(open.1, form.clone())) {
                Ok(()) => written.await.unwrap_or(Written::Nobody),
                Err(_) => Written::Nobody,
            }
        })
    }
}
