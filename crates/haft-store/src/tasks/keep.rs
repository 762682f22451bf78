//! Tasks are made, changed, claimed and ended, each in one transaction.

use super::standing::{RESULT_MAX, Taken};
use super::{COLUMNS, Claim, Ended, Task, TaskKind, TaskStatus, read, runs, write};
use crate::db::{Db, DbResult, Kind};
use crate::work::cancel;
use crate::{Mode, Store, StoreError, cells, now_ms};
use haft_core::record::Digest;
use haft_core::schedule::{Due, Seen, watch_digest, watch_kept, watch_seen};
use haft_core::secret::mask;

/// All that is below a task, and itself.
const BELOW: &str = "WITH RECURSIVE below(id) AS (SELECT id FROM tasks WHERE id = ?1
     UNION SELECT tasks.id FROM tasks JOIN below ON tasks.parent = below.id)";

/// Changes a task, if `change` says that there is something to change. Nobody else changes it meanwhile.
fn change<T>(
    db: &Db<'_>,
    id: &str,
    change: impl FnOnce(&mut Task) -> DbResult<Option<T>>,
) -> DbResult<Option<(Task, T)>> {
    let hold = if db.kind() == Kind::Post { " FOR UPDATE" } else { "" };
    let found = db.first(&format!("SELECT {COLUMNS} FROM tasks WHERE id = ?1{hold}"), cells![id], read)?;
    let Some(mut task) = found else { return Ok(None) };
    let Some(value) = change(&mut task)? else { return Ok(None) };
    write(db, &task)?;
    Ok(Some((task, value)))
}

/// Ends what is under way for a task that is closed or put off. What it asked is not a question any more.
fn let_go(db: &Db<'_>, task: &mut Task) -> DbResult<()> {
    let (Some(why), Some(at_ms)) = (task.rests(), task.standing.at_ms) else { return Ok(()) };
    if let Some(run) = &task.standing.run
        && !cancel(db, run, why)?
    {
        // It is over already, and what came of it is still to be heard.
        return Ok(());
    }
    (task.standing.at_ms, task.standing.run) = (None, None);
    runs::note_left(db, (&task.id, at_ms), why, now_ms())
}

/// What is kept of a result: bounded, and without secrets.
fn kept(result: &str) -> String {
    let masked = mask(result);
    let cut = &masked[..masked.floor_char_boundary(RESULT_MAX)];
    if cut.len() < masked.len() { format!("{cut}\n… (only the beginning is kept)") } else { cut.to_owned() }
}

/// Compares a watched page with what was there before, and remembers it. `None`: there is nothing to tell.
fn looked(db: &Db<'_>, task: &str, text: &str) -> DbResult<Option<String>> {
    let sql = "SELECT digest, text FROM task_pages WHERE task = ?1";
    let before = db.first(sql, cells![task], |row| Ok((row.get::<Vec<u8>>(0)?, row.get::<String>(1)?)))?;
    let before = before.and_then(|(digest, text)| Some((Digest::from_bytes(&digest)?, text)));
    let seen = watch_seen(before.as_ref().map(|(digest, text)| (digest, text.as_str())), text);
    if seen != Seen::Same {
        db.execute(
            "INSERT INTO task_pages (task, digest, text) VALUES (?1, ?2, ?3)
             ON CONFLICT (task) DO UPDATE SET digest = excluded.digest, text = excluded.text",
            cells![task, watch_digest(text).as_bytes().as_slice(), watch_kept(text)],
        )?;
    }
    Ok(match seen {
        Seen::Baseline | Seen::Same => None,
        Seen::Changed { diff } => Some(diff),
    })
}

impl Store {
    /// Keeps a new task.
    pub async fn add_task(&self, task: Task) -> Result<(), StoreError> {
        self.run(Mode::Durable, move |db| write(db, &task).map(drop)).await
    }

    /// Changes a task as `edit` says, and gives it as it is then. Its name, place and parent stay. If nothing more is to be
    /// done for it, what is under way ends with that.
    pub async fn edit_task(
        &self,
        id: &str,
        edit: impl FnOnce(&mut Task) + Send + 'static,
    ) -> Result<Option<Task>, StoreError> {
        let id = id.to_owned();
        self.run(Mode::Durable, move |db| {
            let edited = change(db, &id, |task| {
                edit(task);
                let_go(db, task).map(Some)
            });
            Ok(edited?.map(|(task, ())| task))
        })
        .await
    }

    /// Closes a task and all that is below it and still open, with what is under way for them; says how many that were.
    pub async fn close_task(&self, id: &str, status: TaskStatus, now_ms: i64) -> Result<usize, StoreError> {
        let id = id.to_owned();
        self.run(Mode::Durable, move |db| {
            let ids: Vec<String> =
                db.all(&format!("{BELOW} SELECT id FROM below ORDER BY id"), cells![&id], |row| row.get(0))?;
            let mut closed = 0;
            for each in &ids {
                let done = change(db, each, |task| {
                    let open = !task.status.closed() || each == &id;
                    if open {
                        task.close(status, now_ms);
                        let_go(db, task)?;
                    }
                    Ok(open.then_some(()))
                })?;
                closed += usize::from(done.is_some());
            }
            Ok(closed)
        })
        .await
    }

    /// Forgets a task, all that is below it, and what came of them; says how many that were. What is under way ends.
    pub async fn remove_task(&self, id: &str) -> Result<usize, StoreError> {
        self.note_erased();
        let id = id.to_owned();
        self.run(Mode::Durable, move |db| {
            let under_way =
                format!("{BELOW} SELECT run FROM tasks WHERE run IS NOT NULL AND id IN (SELECT id FROM below)");
            for run in db.all(&under_way, cells![&id], |row| row.get::<String>(0))? {
                cancel(db, &run, "its task was removed")?;
            }
            for table in ["task_runs", "task_pages"] {
                db.execute(&format!("{BELOW} DELETE FROM {table} WHERE task IN (SELECT id FROM below)"), cells![&id])?;
            }
            db.execute(&format!("{BELOW} DELETE FROM tasks WHERE id IN (SELECT id FROM below)"), cells![&id])
        })
        .await
    }

    /// Takes a task that was seen to be due at `seen_ms`. Of all who try, one gets it: in the same transaction its next
    /// time is another one, and the run is noted.
    pub async fn claim_task(&self, id: &str, seen_ms: i64, due: Due, now_ms: i64) -> Result<Option<Claim>, StoreError> {
        let id = id.to_owned();
        self.run(Mode::Durable, move |db| {
            let Some((task, Taken::Start(at_ms))) = change(db, &id, |task| Ok(task.claim(seen_ms, &due, now_ms)))?
            else {
                return Ok(None);
            };
            runs::note_begun(db, &id, at_ms, now_ms)?;
            Ok(Some(Claim { task, at_ms }))
        })
        .await
    }

    /// Notes which run was started for a claim. If the task was closed, put off or removed meanwhile, the run ends here.
    pub async fn task_started(&self, id: &str, at_ms: i64, run: &str) -> Result<bool, StoreError> {
        let (id, run) = (id.to_owned(), run.to_owned());
        self.run(Mode::Durable, move |db| {
            runs::note_run(db, &id, at_ms, &run)?;
            let started = change(db, &id, |task| Ok(task.started(at_ms, &run)))?.is_some();
            let noted = "SELECT EXISTS (SELECT 1 FROM tasks WHERE id = ?1 AND run = ?2)";
            if !started && !db.one(noted, cells![&id, &run], |row| row.get::<bool>(0))? {
                cancel(db, &run, "its task was closed, put off or removed before it began")?;
            }
            Ok(started)
        })
        .await
    }

    /// Notes that a task's run waits for a person, under this approval; or, without one, that it goes on.
    pub async fn task_waits(&self, id: &str, run: &str, approval: Option<&str>) -> Result<bool, StoreError> {
        let (id, run, approval) = (id.to_owned(), run.to_owned(), approval.map(str::to_owned));
        self.run(Mode::Durable, move |db| {
            let noted = change(db, &id, |task| {
                let mine = task.standing.run.as_deref() == Some(&run) && !task.status.closed();
                if mine {
                    task.status = if approval.is_some() { TaskStatus::Waiting } else { TaskStatus::InProgress };
                    task.standing.waits_for = approval;
                }
                Ok(mine.then_some(()))
            });
            Ok(noted?.is_some())
        })
        .await
    }

    /// Notes how a task's run ended, and when the task is due again. Told twice, it counts once.
    pub async fn task_ran(
        &self,
        id: &str,
        run: &str,
        ended: impl Into<Ended> + Send,
        result: &str,
    ) -> Result<bool, StoreError> {
        self.task_ran_at(id, run, ended.into(), result, now_ms()).await
    }

    /// The same by another clock.
    pub async fn task_ran_at(
        &self,
        id: &str,
        run: &str,
        ended: Ended,
        result: &str,
        now_ms: i64,
    ) -> Result<bool, StoreError> {
        let (id, run, result) = (id.to_owned(), run.to_owned(), result.to_owned());
        self.run(Mode::Durable, move |db| {
            let noted = change(db, &id, |task| {
                let Some(at_ms) = task.ended(&run, ended, now_ms) else { return Ok(None) };
                let told = if task.kind == TaskKind::Watch && ended == Ended::Well {
                    looked(db, &task.id, &result)?
                } else {
                    Some(result)
                };
                let told = told.map(|text| kept(&text));
                runs::note_ended(db, (&id, at_ms), &run, ended == Ended::Well, told.as_deref(), now_ms)?;
                // That a page is as it was is not worth forgetting what changed last.
                task.standing.result = told.or_else(|| task.standing.result.take());
                Ok(Some(()))
            });
            Ok(noted?.is_some())
        })
        .await
    }
}
