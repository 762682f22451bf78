//! How much is under way at once. Whoever comes when there is no room waits, for as long as their request may take.
//!
//! Two bounds: requests, so that connections and their buffers are; and bytes of bodies. A small body needs no room; a
//! larger one takes room for all that it may become before it grows, so that no two can wait for each other.

use tokio::sync::{Semaphore, SemaphorePermit};

/// How many requests are under way at once.
const REQUESTS: usize = 64;
/// A body up to this size needs no room.
pub(super) const SMALL: usize = 64 << 10;
/// The room for larger ones, in units of a KiB.
const UNITS: u32 = 24 << 10;

/// The room that there is.
#[derive(Debug)]
pub(super) struct Room {
    requests: Semaphore,
    bodies: Semaphore,
}

impl Default for Room {
    fn default() -> Self {
        Self { requests: Semaphore::new(REQUESTS), bodies: Semaphore::new(UNITS as usize) }
    }
}

impl Room {
    /// Waits for a request's turn. None only if the room were closed, which nobody does.
    pub(super) async fn request(&self) -> Option<SemaphorePermit<'_>> {
        self.requests.acquire().await.ok()
    }

    /// Waits until a body may grow to this size. One that is larger than all the room there is takes all of it.
    pub(super) async fn body(&self, bytes: usize) -> Option<SemaphorePermit<'_>> {
        let units = u32::try_from(bytes >> 10).unwrap_or(UNITS).clamp(1, UNITS);
        self.bodies.acquire_many(units).await.ok()
    }
}
