//! What tables a database has and what is in them, asked of itself: whoever copies or checks a store knows no table by name,
//! so that a new one needs nobody's attention.

use crate::cells;
use crate::db::{Db, DbResult, Kind};

/// A table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Table {
    pub(crate) name: String,
    pub(crate) columns: Vec<Column>,
}

/// A column of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) name: String,
    /// Worked out by the database: can be read and not be written.
    pub(crate) computed: bool,
    /// Has to be given.
    pub(crate) required: bool,
    pub(crate) holds: Holds,
}

/// What a column holds, as far as both databases have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Holds {
    Int,
    Real,
    Text,
    Bytes,
    /// What only one of them knows, and makes of the rest: words to search by.
    Other,
}

impl Holds {
    fn of(kind: &str) -> Self {
        match kind.to_ascii_lowercase().as_str() {
            "integer" | "int" | "bigint" | "int8" | "int4" | "bool" => Self::Int,
            "real" | "double" | "double precision" | "float8" => Self::Real,
            "text" => Self::Text,
            "blob" | "bytea" => Self::Bytes,
            _ => Self::Other,
        }
    }
}

impl Table {
    pub(crate) fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.name == name)
    }

    /// How many rows it has.
    pub(crate) fn count(&self, db: &Db<'_>) -> DbResult<i64> {
        db.one(&format!("SELECT count(*) FROM \"{}\"", self.name), &[], |row| row.get(0))
    }
}

/// All tables of a store, by name; without those that a database keeps for itself, such as a full-text index's.
pub(crate) fn tables(db: &Db<'_>) -> DbResult<Vec<Table>> {
    match db.kind() {
        Kind::Lite => of_file(db),
        Kind::Post => of_server(db),
    }
}

fn of_file(db: &Db<'_>) -> DbResult<Vec<Table>> {
    let sql = "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table'
               AND name NOT LIKE 'sqlite~_%' ESCAPE '~' ORDER BY name";
    let names: Vec<String> = db.all(sql, &[], |row| row.get(0))?;
    let columns = "SELECT name, type, hidden, \"notnull\" <> 0 AND dflt_value IS NULL FROM pragma_table_xinfo(?1)";
    let of = |name: String| {
        let columns = db.all(columns, cells![name], |row| {
            let (kind, hidden): (String, i64) = (row.get(1)?, row.get(2)?);
            Ok(Column { name: row.get(0)?, computed: hidden > 1, required: row.get(3)?, holds: Holds::of(&kind) })
        })?;
        Ok(Table { name, columns })
    };
    names.into_iter().map(of).collect()
}

fn of_server(db: &Db<'_>) -> DbResult<Vec<Table>> {
    let sql = "SELECT CAST(c.relname AS TEXT), CAST(a.attname AS TEXT), CAST(t.typname AS TEXT), a.attgenerated <> '',
               a.attnotnull AND NOT a.atthasdef AND a.attidentity = ''
               FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
               JOIN pg_attribute a ON a.attrelid = c.oid JOIN pg_type t ON t.oid = a.atttypid
               WHERE n.nspname = current_schema() AND c.relkind IN ('r', 'p') AND a.attnum > 0 AND NOT a.attisdropped
               AND c.relname <> 'haft_format' ORDER BY c.relname COLLATE \"C\", a.attnum";
    let mut tables: Vec<Table> = Vec::new();
    db.each(sql, &[], |row| {
        let (table, kind): (String, String) = (row.get(0)?, row.get(2)?);
        let column =
            Column { name: row.get(1)?, computed: row.get(3)?, required: row.get(4)?, holds: Holds::of(&kind) };
        match tables.last_mut().filter(|last| last.name == table) {
            Some(last) => last.columns.push(column),
            None => tables.push(Table { name: table, columns: vec![column] }),
        }
        Ok(true)
    })?;
    Ok(tables)
}
