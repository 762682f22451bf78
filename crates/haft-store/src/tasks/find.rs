//! Finding tasks: by name, by what they are about, and what is due.

use super::{COLUMNS, Priority, Task, TaskStatus, read};
use crate::db::Cell;
use crate::{Mode, Store, StoreError, cells};

/// Which tasks somebody wants to see. What is not said does not matter.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TaskFilter {
    /// In one of these places; empty: everywhere.
    pub places: Vec<String>,
    /// Standing so. Without one, those that are not closed.
    pub status: Option<TaskStatus>,
    /// Closed ones, too.
    pub closed: bool,
    /// Due from then until (not any more) then.
    pub due: Option<(i64, i64)>,
    /// With this tag.
    pub tag: Option<String>,
    /// With these words in title or description.
    pub text: Option<String>,
    /// Parts of this task.
    pub parent: Option<String>,
    /// As important.
    pub priority: Option<Priority>,
    /// So many at the most; 0 is a hundred.
    pub limit: u32,
}

/// What finds the due tasks of a project. Its index holds nothing but tasks that have a next time.
const DUE: &str = "FROM tasks WHERE root = ?1 AND next_ms IS NOT NULL AND next_ms <= ?2 ORDER BY next_ms, id LIMIT ?3";

/// A task whose run waits for a person, or does so no longer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asking {
    /// The task.
    pub task: String,
    /// Its run.
    pub run: String,
    /// The question, if there is one.
    pub question: Option<String>,
}

/// A condition and what fills it, one after the other.
struct Wanted<'c> {
    sql: String,
    cells: Vec<Cell<'c>>,
}

impl<'c> Wanted<'c> {
    /// Adds a condition; `#` stands for the next parameter.
    fn and(&mut self, condition: &str, cells: impl IntoIterator<Item = Cell<'c>>) {
        self.sql.push_str(if self.sql.is_empty() { " WHERE " } else { " AND " });
        let mut parts = condition.split('#');
        self.sql.push_str(parts.next().unwrap_or_default());
        for (part, cell) in parts.zip(cells) {
            self.cells.push(cell);
            self.sql.push_str(&format!("?{}{part}", self.cells.len()));
        }
    }
}

/// Words as a pattern that means them and nothing else.
fn containing(words: &str) -> String {
    let escaped: String = words.to_lowercase().chars().flat_map(|c| escape(c).into_iter().flatten()).collect();
    format!("%{escaped}%")
}

fn escape(c: char) -> [Option<char>; 2] {
    [matches!(c, '%' | '_' | '!').then_some('!'), Some(c)]
}

fn text(value: &str) -> Cell<'_> {
    Cell::Text(value.into())
}

fn wanted(filter: &TaskFilter) -> Wanted<'_> {
    let mut wanted = Wanted { sql: String::new(), cells: Vec::new() };
    if !filter.places.is_empty() {
        let marks = vec!["#"; filter.places.len()].join(", ");
        wanted.and(&format!("place IN ({marks})"), filter.places.iter().map(|place| text(place)));
    }
    match filter.status {
        Some(status) => wanted.and("status = #", [text(status.as_str())]),
        None if !filter.closed => wanted.and("status IN ('pending', 'in_progress', 'waiting')", []),
        None => {}
    }
    if let Some((from, to)) = filter.due {
        wanted.and("due_ms >= # AND due_ms < #", [Cell::Int(from), Cell::Int(to)]);
    }
    if let Some(tag) = &filter.tag {
        let quoted = containing(&serde_json::to_string(tag).unwrap_or_default());
        wanted.and("lower(tags) LIKE # ESCAPE '!'", [Cell::Text(quoted.into())]);
    }
    if let Some(words) = &filter.text {
        let pattern = containing(words);
        let sql = "(lower(title) LIKE # ESCAPE '!' OR lower(description) LIKE # ESCAPE '!')";
        wanted.and(sql, [Cell::Text(pattern.clone().into()), Cell::Text(pattern.into())]);
    }
    if let Some(parent) = &filter.parent {
        wanted.and("parent = #", [text(parent)]);
    }
    if let Some(priority) = filter.priority {
        wanted.and("priority = #", [Cell::Int(i64::from(priority as u8))]);
    }
    wanted
}

impl Store {
    /// One task, by its whole name.
    pub async fn task(&self, id: &str) -> Result<Option<Task>, StoreError> {
        let id = id.to_owned();
        let sql = format!("SELECT {COLUMNS} FROM tasks WHERE id = ?1");
        self.run(Mode::Read, move |db| db.first(&sql, cells![id], read)).await
    }

    /// Tasks whose names begin so, up to `limit`. Names are hexadecimal digits.
    pub async fn tasks_named(&self, prefix: &str, limit: u32) -> Result<Vec<Task>, StoreError> {
        if prefix.is_empty() || !prefix.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
            return Ok(Vec::new());
        }
        // No name comes after this that begins with the prefix.
        let (from, to) = (prefix.to_owned(), format!("{prefix}g"));
        let sql = format!("SELECT {COLUMNS} FROM tasks WHERE id >= ?1 AND id <= ?2 ORDER BY id LIMIT ?3");
        self.run(Mode::Read, move |db| db.all(&sql, cells![from, to, limit], read)).await
    }

    /// The tasks that somebody wants to see: what matters most first, then what is due first.
    pub async fn tasks(&self, filter: TaskFilter) -> Result<Vec<Task>, StoreError> {
        self.run(Mode::Read, move |db| {
            let Wanted { sql, mut cells } = wanted(&filter);
            cells.push(Cell::Int(if filter.limit == 0 { 100 } else { filter.limit.into() }));
            let order = format!("ORDER BY priority DESC, due_ms IS NULL, due_ms, made_ms, id LIMIT ?{}", cells.len());
            db.all(&format!("SELECT {COLUMNS} FROM tasks{sql} {order}"), &cells, read)
        })
        .await
    }

    /// The tasks of a project that are due, the most overdue first.
    pub async fn due_tasks(&self, root: &str, now_ms: i64, limit: u32) -> Result<Vec<Task>, StoreError> {
        let (root, sql) = (root.to_owned(), format!("SELECT {COLUMNS} {DUE}"));
        self.run(Mode::Read, move |db| db.all(&sql, cells![root, now_ms, limit], read)).await
    }

    /// When the next task of a project is due.
    pub async fn next_task_ms(&self, root: &str) -> Result<Option<i64>, StoreError> {
        let root = root.to_owned();
        let sql = "SELECT min(next_ms) FROM tasks WHERE root = ?1 AND next_ms IS NOT NULL";
        self.run(Mode::Read, move |db| db.one(sql, cells![root], |row| row.get(0))).await
    }

    /// Tasks of a project whose runs are over, which they have not heard.
    pub async fn ended_tasks(&self, root: &str, limit: u32) -> Result<Vec<Task>, StoreError> {
        let root = root.to_owned();
        let sql = format!(
            "SELECT {COLUMNS} FROM tasks WHERE root = ?1 AND run IS NOT NULL
             AND EXISTS (SELECT 1 FROM runs WHERE runs.id = tasks.run AND runs.state <> 'running') LIMIT ?2"
        );
        self.run(Mode::Read, move |db| db.all(&sql, cells![root, limit], read)).await
    }

    /// Tasks of a project whose runs have begun to wait for a person, or do so no longer: the task, its run, and the
    /// question.
    pub async fn asking_tasks(&self, root: &str) -> Result<Vec<Asking>, StoreError> {
        let root = root.to_owned();
        self.run(Mode::Read, move |db| {
            // A pipeline may ask several things at once: one after the other is told.
            let sql = "SELECT id, run, question FROM (SELECT tasks.id AS id, tasks.run AS run, tasks.waits_for AS told,
                       (SELECT min(steps.call_id) FROM steps WHERE steps.run = tasks.run AND steps.state = 'asking')
                       AS question FROM tasks WHERE root = ?1 AND run IS NOT NULL) AS under_way
                       WHERE coalesce(question, '') <> coalesce(told, '')";
            db.all(sql, cells![root], |row| Ok(Asking { task: row.get(0)?, run: row.get(1)?, question: row.get(2)? }))
        })
        .await
    }

    /// How many tasks of a place are open. Counted up to `limit`.
    pub async fn open_tasks(&self, place: &str, limit: u32) -> Result<i64, StoreError> {
        let place = place.to_owned();
        let sql = "SELECT count(*) FROM (SELECT 1 FROM tasks WHERE place = ?1
                   AND status IN ('pending', 'in_progress', 'waiting') LIMIT ?2) AS open";
        self.run(Mode::Read, move |db| db.one(sql, cells![place, limit], |row| row.get(0))).await
    }

    /// How many tasks of a place may still do something by themselves. Counted up to `limit`.
    pub async fn live_tasks(&self, place: &str, limit: u32) -> Result<i64, StoreError> {
        let place = place.to_owned();
        let sql = "SELECT count(*) FROM (SELECT 1 FROM tasks WHERE place = ?1
                   AND status IN ('pending', 'in_progress', 'waiting') AND kind <> 'manual' LIMIT ?2) AS live";
        self.run(Mode::Read, move |db| db.one(sql, cells![place, limit], |row| row.get(0))).await
    }
}
