//! Lua's values as JSON and back. Nothing of a script runs while a value is looked at: metamethods are not asked.

use mlua::{Lua, Table, Value as Lual};
use serde_json::{Map, Number, Value};

/// How deep a value may go.
const DEPTH_MAX: usize = 64;
/// How many parts it may have: a table that holds itself twice, ten times over, has a thousand.
const PARTS_MAX: usize = 200_000;
/// How much text it may hold, in bytes.
const TEXT_MAX: usize = 8 << 20;
/// Where the mark of arrays is kept, so that an empty one stays an array.
const ARRAY: &str = "haft.array";

/// What is left of the limits.
struct Left {
    parts: usize,
    text: usize,
}

fn wrong(why: impl Into<String>) -> mlua::Error {
    mlua::Error::RuntimeError(why.into())
}

/// A value as JSON.
pub(super) fn to_json(lua: &Lua, value: &Lual) -> mlua::Result<Value> {
    let mut left = Left { parts: PARTS_MAX, text: TEXT_MAX };
    convert(lua, value, DEPTH_MAX, &mut left)
}

fn convert(lua: &Lua, value: &Lual, depth: usize, left: &mut Left) -> mlua::Result<Value> {
    left.parts = left.parts.checked_sub(1).ok_or_else(|| wrong("the value has too many parts"))?;
    Ok(match value {
        Lual::Nil => Value::Null,
        // What stands for null.
        Lual::LightUserData(pointer) if pointer.0.is_null() => Value::Null,
        Lual::Boolean(value) => Value::Bool(*value),
        Lual::Integer(number) => Value::from(*number),
        Lual::Number(number) => decimal(*number)?,
        Lual::String(text) => Value::String(taken(&text.as_bytes(), left)?),
        Lual::Table(table) => {
            table_of(lua, table, depth.checked_sub(1).ok_or_else(|| wrong("the value is too deep"))?, left)?
        }
        other => return Err(wrong(format!("a {} cannot be passed on", other.type_name()))),
    })
}

/// A number; a whole one as such, for whoever expects one.
#[expect(clippy::cast_possible_truncation, reason = "it is whole and small")]
fn decimal(number: f64) -> mlua::Result<Value> {
    if number.fract() == 0.0 && number.abs() < 9e15 {
        return Ok(Value::from(number as i64));
    }
    Number::from_f64(number).map(Value::Number).ok_or_else(|| wrong("a number that is none cannot be passed on"))
}

fn taken(bytes: &[u8], left: &mut Left) -> mlua::Result<String> {
    left.text = left.text.checked_sub(bytes.len()).ok_or_else(|| wrong("the value holds too much text"))?;
    Ok(String::from_utf8_lossy(bytes).into_owned())
}

fn table_of(lua: &Lua, table: &Table, depth: usize, left: &mut Left) -> mlua::Result<Value> {
    let length = table.raw_len();
    if length > 0 || is_array(lua, table) {
        let mut items = Vec::new();
        for at in 1..=length {
            items.push(convert(lua, &table.raw_get(at)?, depth, left)?);
        }
        let others = table.pairs::<Lual, Lual>().take(length + 1).count();
        if others > length {
            return Err(wrong("a table with both numbered and named parts cannot be passed on"));
        }
        return Ok(Value::Array(items));
    }
    let mut map = Map::new();
    for pair in table.pairs::<Lual, Lual>() {
        let (name, value) = pair?;
        let name = match name {
            Lual::String(name) => taken(&name.as_bytes(), left)?,
            Lual::Integer(number) => number.to_string(),
            other => return Err(wrong(format!("a {} cannot be a name", other.type_name()))),
        };
        map.insert(name, convert(lua, &value, depth, left)?);
    }
    Ok(Value::Object(map))
}

fn mark(lua: &Lua) -> mlua::Result<Table> {
    if let Ok(mark) = lua.named_registry_value::<Table>(ARRAY) {
        return Ok(mark);
    }
    let mark = lua.create_table()?;
    // Nobody gets hold of it, or changes what it is on.
    mark.raw_set("__metatable", false)?;
    lua.set_named_registry_value(ARRAY, &mark)?;
    Ok(mark)
}

fn is_array(lua: &Lua, table: &Table) -> bool {
    table.metatable().is_some_and(|own| mark(lua).is_ok_and(|mark| mark == own))
}

/// Says of a table that it is an array, also if it is empty.
pub(super) fn as_array(lua: &Lua, table: Table) -> mlua::Result<Table> {
    table.set_metatable(Some(mark(lua)?))?;
    Ok(table)
}

/// JSON as a value. A field that is null is not there; in an array it is `json.null`.
pub(super) fn from_json(lua: &Lua, value: &Value) -> mlua::Result<Lual> {
    Ok(match value {
        Value::Null => Lual::NULL,
        Value::Bool(value) => Lual::Boolean(*value),
        Value::Number(number) => match number.as_i64() {
            Some(number) => Lual::Integer(number),
            None => Lual::Number(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) => Lual::String(lua.create_string(text)?),
        Value::Array(items) => {
            let table = lua.create_table_with_capacity(items.len(), 0)?;
            for (at, item) in items.iter().enumerate() {
                table.raw_set(at + 1, from_json(lua, item)?)?;
            }
            Lual::Table(as_array(lua, table)?)
        }
        Value::Object(map) => {
            let table = lua.create_table()?;
            for (name, item) in map.iter().filter(|(_, item)| !item.is_null()) {
                table.raw_set(name.as_str(), from_json(lua, item)?)?;
            }
            Lual::Table(table)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn made(code: &str) -> Result<Value, String> {
        let lua = Lua::new();
        let value: Lual = lua.load(code).eval().unwrap();
        to_json(&lua, &value).map_err(|error| error.to_string())
    }

    #[test]
    fn values_go_there_and_back() {
        let lua = Lua::new();
        for value in
            [json!({"a": [1, 2.5, "x", true, null], "b": {"c": []}}), json!("é"), json!([]), json!(7), json!({})]
        {
            let there = from_json(&lua, &value).unwrap();
            assert_eq!(to_json(&lua, &there).unwrap(), value);
        }
        assert_eq!(made("return {x = 3.0, y = {1, 2}, z = 0.5}").unwrap(), json!({"x": 3, "y": [1, 2], "z": 0.5}));
        assert_eq!(
            made("return setmetatable({1}, {__index = error, __len = error, __pairs = error})").unwrap(),
            json!([1])
        );
    }

    #[test]
    fn what_has_no_end_is_refused() {
        for (code, why) in [
            ("local t = {} t.t = t return t", "too deep"),
            ("local t = {} for i = 1, 60 do t = {t, t} end return t", "too many parts"),
            ("local s = ('x'):rep(1 << 20) local t = {} for i = 1, 9 do t[i] = s end return t", "too much text"),
            ("return print", "cannot be passed on"),
            ("return 0/0", "a number that is none"),
            ("return {1, 2, x = 3}", "both numbered and named"),
            ("return {[true] = 1}", "cannot be a name"),
        ] {
            let said = made(code).unwrap_err();
            assert!(said.contains(why), "{code}: {said}");
        }
    }
}
