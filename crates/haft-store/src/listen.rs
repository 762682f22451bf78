//! Hearing from a server what others have written: a connection of its own, in a thread of its own. When it is lost, it is
//! made again, and everybody looks: something may have been missed.

use crate::post::Address;
use crate::topic::{Bell, Topic, Topics};
use postgres::fallible_iterator::FallibleIterator;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// What is listened to.
pub(crate) const CHANNEL: &str = "haft";
/// How long to listen before looking whether anybody still wants to hear.
const LISTEN: Duration = Duration::from_millis(500);
/// How long to wait before connecting again.
const AGAIN: Duration = Duration::from_secs(1);

/// Somebody listens as long as this is there.
pub(crate) struct Listener(Arc<AtomicBool>);

impl Drop for Listener {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Listener {
    /// Begins to listen. None if there is no thread for it: then whoever waits has to look now and then.
    pub(crate) fn start(address: Address, bell: Arc<Bell>) -> Option<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&stop);
        let life = move || {
            while !ended.load(Ordering::Relaxed) {
                // Whatever goes wrong is the connection's end; there will be another.
                let _ = listen(&address, &bell, &ended);
                if !ended.load(Ordering::Relaxed) {
                    std::thread::sleep(AGAIN);
                }
            }
        };
        std::thread::Builder::new().name("haft-listener".to_owned()).spawn(life).ok()?;
        Some(Self(stop))
    }
}

fn listen(address: &Address, bell: &Bell, ended: &AtomicBool) -> Result<(), crate::DbError> {
    let Ok(mut server) = address.dial() else { return Ok(()) };
    server.client.batch_execute(&format!("LISTEN {CHANNEL}"))?;
    bell.ring_for_others(Topics::ALL);
    while !ended.load(Ordering::Relaxed) {
        let heard = server.client.notifications().timeout_iter(LISTEN).next()?;
        let Some(heard) = heard else {
            if server.client.is_closed() {
                return Ok(());
            }
            continue;
        };
        let mut words = heard.payload().split(' ');
        let topic = words.next().and_then(Topic::parse);
        let own = words.next().is_some_and(|writer| writer == address.writer().to_string());
        if let Some(topic) = topic.filter(|_| !own) {
            bell.ring_for_others(Topics::default().with(topic));
        }
    }
    Ok(())
}
