//! Edits of a TOML file: comments, order and layout of everything else stay as they are (`toml_edit`).

use super::edits::EditError;
use serde_json::{Map, Value};
use toml_edit::{Array, ArrayOfTables, DocumentMut, InlineTable, Item, Table, TableLike};

/// What the text says.
pub(super) fn value(text: &str) -> Result<Value, EditError> {
    let document = parse(text)?;
    Ok(Value::Object(table_value(document.as_table())))
}

/// The text with a value at a path. Tables on the way are made.
pub(super) fn set(text: &str, path: &[String], value: &Value) -> Result<String, EditError> {
    let mut document = parse(text)?;
    let Some((name, parents)) = path.split_last() else { return Err(EditError::missing(path)) };
    let table = table_at(document.as_table_mut(), parents, MissingTable::Create)?;
    // A table of its own below others, and one line where it is a setting of the whole file.
    let item = if parents.is_empty() { Item::Value(inline(value)?) } else { block(value)? };
    match (table.get_mut(name), item) {
        (Some(Item::Value(old)), Item::Value(mut new)) => {
            *new.decor_mut() = old.decor().clone();
            *old = new;
        }
        (_, item) => {
            table.insert(name, item);
        }
    }
    Ok(document.to_string())
}

/// The text without the value at a path.
pub(super) fn remove(text: &str, path: &[String]) -> Result<String, EditError> {
    let mut document = parse(text)?;
    let Some((name, parents)) = path.split_last() else { return Err(EditError::missing(path)) };
    table_at(document.as_table_mut(), parents, MissingTable::Refuse)?
        .remove(name)
        .ok_or_else(|| EditError::missing(path))?;
    Ok(document.to_string())
}

/// The text with a value at the end of a list that is there.
pub(super) fn push(text: &str, path: &[String], value: &Value) -> Result<String, EditError> {
    let mut document = parse(text)?;
    match list_at(&mut document, path)? {
        Item::ArrayOfTables(tables) => tables.push(block_table(value)?),
        Item::Value(toml_edit::Value::Array(array)) => array.push(inline(value)?),
        _ => return Err(EditError::wrong_kind(path, "a list")),
    }
    Ok(document.to_string())
}

/// The text without a value of a list.
pub(super) fn remove_item(text: &str, path: &[String], value: &Value) -> Result<String, EditError> {
    let mut document = parse(text)?;
    match list_at(&mut document, path)? {
        Item::ArrayOfTables(tables) => {
            let at = tables.iter().position(|table| &Value::Object(table_value(table)) == value);
            tables.remove(at.ok_or_else(|| EditError::missing(path))?);
        }
        Item::Value(toml_edit::Value::Array(array)) => {
            let at = array.iter().position(|item| &value_of(item) == value);
            array.remove(at.ok_or_else(|| EditError::missing(path))?);
        }
        _ => return Err(EditError::wrong_kind(path, "a list")),
    }
    Ok(document.to_string())
}

/// An empty list of tables, for a path whose values are tables.
pub(super) fn set_tables(text: &str, path: &[String], values: &[Value]) -> Result<String, EditError> {
    let mut document = parse(text)?;
    let Some((name, parents)) = path.split_last() else { return Err(EditError::missing(path)) };
    let mut tables = ArrayOfTables::new();
    for value in values {
        tables.push(block_table(value)?);
    }
    table_at(document.as_table_mut(), parents, MissingTable::Create)?.insert(name, Item::ArrayOfTables(tables));
    Ok(document.to_string())
}

fn parse(text: &str) -> Result<DocumentMut, EditError> {
    text.parse().map_err(|error: toml_edit::TomlError| EditError::Unreadable {
        format: "TOML",
        what: error.to_string().lines().collect::<Vec<_>>().join(" "),
    })
}

fn list_at<'d>(document: &'d mut DocumentMut, path: &[String]) -> Result<&'d mut Item, EditError> {
    let (name, parents) = path.split_last().ok_or_else(|| EditError::missing(path))?;
    table_at(document.as_table_mut(), parents, MissingTable::Refuse)?
        .get_mut(name)
        .ok_or_else(|| EditError::missing(path))
}

/// What happens when a table on the way is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MissingTable {
    Create,
    Refuse,
}

/// The table at a path. One that is created shows no header of its own unless it has values.
fn table_at<'d>(
    root: &'d mut Table,
    path: &[String],
    missing: MissingTable,
) -> Result<&'d mut dyn TableLike, EditError> {
    let mut table: &mut dyn TableLike = root;
    for (depth, name) in path.iter().enumerate() {
        if missing == MissingTable::Create && table.get(name).is_none() {
            let mut fresh = Table::new();
            fresh.set_implicit(true);
            table.insert(name, Item::Table(fresh));
        }
        table = table
            .get_mut(name)
            .and_then(Item::as_table_like_mut)
            .ok_or_else(|| EditError::wrong_kind(&path[..=depth], "a table"))?;
    }
    Ok(table)
}

/// A value as an item of a table: objects as tables, lists of objects as arrays of tables.
fn block(value: &Value) -> Result<Item, EditError> {
    match value {
        Value::Object(_) => Ok(Item::Table(block_table(value)?)),
        Value::Array(items) if !items.is_empty() && items.iter().all(Value::is_object) => {
            let mut tables = ArrayOfTables::new();
            for item in items {
                tables.push(block_table(item)?);
            }
            Ok(Item::ArrayOfTables(tables))
        }
        value => Ok(Item::Value(inline(value)?)),
    }
}

fn block_table(value: &Value) -> Result<Table, EditError> {
    let members = value.as_object().ok_or_else(|| EditError::NoForm(value.to_string()))?;
    let mut table = Table::new();
    for (name, member) in members {
        table.insert(name, block(member)?);
    }
    Ok(table)
}

fn inline(value: &Value) -> Result<toml_edit::Value, EditError> {
    Ok(match value {
        Value::Null => return Err(EditError::NoForm("null".to_owned())),
        Value::Bool(truth) => (*truth).into(),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(integer), _) => integer.into(),
            (None, Some(float)) => float.into(),
            (None, None) => return Err(EditError::NoForm(number.to_string())),
        },
        Value::String(text) => text.as_str().into(),
        Value::Array(items) => items.iter().map(inline).collect::<Result<Array, _>>()?.into(),
        Value::Object(members) => {
            let mut table = InlineTable::new();
            for (name, member) in members {
                table.insert(name, inline(member)?);
            }
            table.into()
        }
    })
}

fn table_value(table: &dyn TableLike) -> Map<String, Value> {
    table.iter().map(|(name, item)| (name.to_owned(), item_value(item))).collect()
}

fn item_value(item: &Item) -> Value {
    match item {
        Item::None => Value::Null,
        Item::Value(value) => value_of(value),
        Item::Table(table) => Value::Object(table_value(table)),
        Item::ArrayOfTables(tables) => tables.iter().map(|table| Value::Object(table_value(table))).collect(),
    }
}

fn value_of(value: &toml_edit::Value) -> Value {
    match value {
        toml_edit::Value::String(text) => text.value().as_str().into(),
        toml_edit::Value::Integer(integer) => (*integer.value()).into(),
        toml_edit::Value::Float(float) => (*float.value()).into(),
        toml_edit::Value::Boolean(truth) => (*truth.value()).into(),
        // Only compared with itself.
        toml_edit::Value::Datetime(time) => time.value().to_string().into(),
        toml_edit::Value::Array(items) => items.iter().map(value_of).collect(),
        toml_edit::Value::InlineTable(table) => Value::Object(table_value(table)),
    }
}
