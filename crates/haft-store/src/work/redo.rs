//! Steps that ended well and are to be done again with those that did not.

use crate::cells;
use crate::{Mode, Store, StoreError};

impl Store {
    /// Lets steps of a run that is over count as not done, so that taking it up again does them, too. Says how many those are.
    pub async fn redo_steps(&self, run: &str, numbers: Vec<u32>) -> Result<usize, StoreError> {
        let run = run.to_owned();
        self.run(Mode::Durable, move |db| {
            let sql = "UPDATE steps SET state = 'skipped' WHERE run = ?1 AND nr = ?2 AND state = 'done'
                 AND EXISTS (SELECT 1 FROM runs WHERE id = ?1 AND state <> 'running')";
            let mut redone = 0;
            for number in &numbers {
                redone += db.execute(sql, cells![run, *number])?;
            }
            Ok(redone)
        })
        .await
    }
}
