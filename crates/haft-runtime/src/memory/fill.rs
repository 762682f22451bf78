//! Making vectors of pieces that have none: a few while a call waits, the rest after it, as long as the process lives.
//! What is left over is made by whoever searches next.

use super::Memory;
use super::embedder::Embedder;
use crate::scene::Scene;
use crate::store_error;
use haft_core::CallError;
use std::sync::{Arc, PoisonError};

impl Memory {
    /// Makes some of the vectors that are missing, and the rest in the background. Everything is in step afterwards.
    pub(super) async fn fill(self: &Arc<Self>, scene: &Scene, embedder: &Embedder) -> Result<(), CallError> {
        let (now, _) = embedder.portion();
        if !self.fill_some(scene, embedder, now).await? {
            return Ok(());
        }
        let mut filling = self.filling.lock().unwrap_or_else(PoisonError::into_inner);
        while filling.try_join_next().is_some() {}
        if filling.is_empty() {
            let (memory, scene, embedder) = (Arc::downgrade(self), scene.clone(), embedder.clone());
            // It ends with what it fills, or when there is nothing more to do, or when that fails.
            filling.spawn(async move {
                let (_, portion) = embedder.portion();
                while let Some(memory) = memory.upgrade() {
                    if !memory.fill_some(&scene, &embedder, portion).await.unwrap_or(false) {
                        break;
                    }
                }
            });
        }
        Ok(())
    }

    /// Makes up to so many vectors. Says whether more are missing.
    pub(crate) async fn fill_some(&self, scene: &Scene, embedder: &Embedder, most: usize) -> Result<bool, CallError> {
        let (store, model) = (scene.store(), embedder.model());
        self.sync(store, Some(&model)).await?;
        let ids = self.held.read().unwrap_or_else(PoisonError::into_inner).index.missing(most + 1);
        let more = ids.len() > most;
        let ids: Vec<i64> = ids.into_iter().take(most).collect();
        if ids.is_empty() {
            return Ok(false);
        }
        let pieces = store.memory_texts(ids).await.map_err(store_error)?;
        let (ids, texts): (Vec<i64>, Vec<String>) = pieces.into_iter().unzip();
        if !texts.is_empty() {
            let vectors = embedder.embed(scene, texts).await?;
            let vectors = ids.into_iter().zip(vectors).collect();
            store.memory_keep_vectors(model.clone(), vectors).await.map_err(store_error)?;
        }
        self.sync(store, Some(&model)).await?;
        Ok(more)
    }
}
