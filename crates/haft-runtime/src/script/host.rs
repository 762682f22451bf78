//! The life of a host: it takes a script, runs it, asks for the calls that it wants, and says what came of it.
//!
//! Whatever a script does, it does to this process, which has nothing and may use up little. Lua is kept to its harmless
//! libraries all the same, and to a number of steps and an amount of memory, so that most of what goes wrong is said in
//! words. What is not counted (a pattern that backtracks for ever, a finalizer) ends when the kernel ends this process.

use super::values::{as_array, from_json, to_json};
use super::{Came, LINE_MAX, Order, Said, Wanted};
use haft_core::CallError;
use mlua::ChunkMode;
use mlua::{HookTriggers, Lua, LuaOptions, MultiValue, StdLib, Table, Value as Lual, VmState};
use serde_json::Value;
use std::cell::{Cell, RefCell};
use std::io::{BufRead, Read, Write};
use std::rc::Rc;

/// How many steps a script may take, and how often they are counted.
const STEPS_MAX: u64 = 300_000_000;
const STEPS_AT_ONCE: u32 = 10_000;
/// How much memory it may have, in bytes.
const MEMORY_MAX: usize = 128 << 20;
/// How much it may print, in bytes.
const PRINTED_MAX: usize = 256 << 10;
/// How many calls it may want at once.
const AT_ONCE_MAX: usize = 64;

/// What every script has.
const PRELUDE: &str = include_str!("prelude.lua");

/// Both ends of the line to whoever started this.
struct Line {
    input: Box<dyn BufRead>,
    output: Box<dyn Write>,
}

impl Line {
    fn read(&mut self) -> Result<Vec<u8>, String> {
        let mut line = Vec::new();
        let mut input = (&mut self.input).take(LINE_MAX as u64 + 1);
        input.read_until(b'\n', &mut line).map_err(|error| format!("nothing came: {error}"))?;
        if line.last() == Some(&b'\n') { Ok(line) } else { Err("whoever started this is gone".to_owned()) }
    }

    fn say(&mut self, said: &Said) -> Result<(), String> {
        let mut text = serde_json::to_vec(said).map_err(|error| error.to_string())?;
        text.push(b'\n');
        if text.len() > LINE_MAX {
            return Err("that is more than one call can take".to_owned());
        }
        self.output.write_all(&text).and_then(|()| self.output.flush()).map_err(|error| error.to_string())
    }

    fn ask(&mut self, wanted: Vec<Wanted>) -> Result<Vec<Came>, String> {
        self.say(&Said::Calls(wanted))?;
        serde_json::from_slice(&self.read()?).map_err(|error| error.to_string())
    }
}

/// What a script has in its hands.
#[derive(Clone)]
struct Hands {
    line: Rc<RefCell<Line>>,
    printed: Rc<RefCell<String>>,
    steps: Rc<Cell<u64>>,
}

/// Takes a script from `input`, runs it, and says on `output` what came of it. Returns when it is over.
pub fn host(input: impl BufRead + 'static, output: impl Write + 'static) -> Result<(), CallError> {
    let lost = |why: String| CallError::internal(format!("no script came: {why}"));
    let mut line = Line { input: Box::new(input), output: Box::new(output) };
    let order: Order = serde_json::from_slice(&line.read().map_err(lost)?).map_err(|error| lost(error.to_string()))?;
    let hands = Hands { line: Rc::new(RefCell::new(line)), printed: Rc::default(), steps: Rc::default() };
    let lua = made(&hands).map_err(|error| CallError::internal(format!("no Lua: {error}")))?;
    let came = run(&lua, &order.code);
    let printed = hands.printed.take();
    let said = match came {
        Ok(value) => Said::Done { value, printed },
        Err(error) => Said::Failed { message: plain(&error), printed },
    };
    // Before anything is cleared away: that may run what the script left behind.
    let mut line = hands.line.borrow_mut();
    let told = line.say(&said).or_else(|why| {
        // Perhaps it was only too much of it.
        let message = format!("what came of it cannot be told: {why}");
        line.say(&Said::Failed { message, printed: String::new() })
    });
    told.map_err(|why| CallError::internal(format!("nobody hears what came of it: {why}")))
}

fn run(lua: &Lua, code: &str) -> mlua::Result<Value> {
    // Only text: what is compiled already could be anything.
    let values: MultiValue = lua.load(code).set_name("=script").set_mode(ChunkMode::Text).eval()?;
    to_json(lua, values.front().unwrap_or(&Lual::Nil))
}

/// What went wrong, without the way there.
fn plain(error: &mlua::Error) -> String {
    let text = match error {
        mlua::Error::MemoryError(_) => format!("it wanted more than {} MiB of memory", MEMORY_MAX >> 20),
        other => other.to_string(),
    };
    let text = text.split("\nstack traceback:").next().unwrap_or_default();
    let text = ["runtime error: ", "syntax error: "].iter().find_map(|head| text.strip_prefix(head)).unwrap_or(text);
    haft_core::preview::cut(text, 2000)
}

/// A Lua with what a script may use.
fn made(hands: &Hands) -> mlua::Result<Lua> {
    let libraries = StdLib::TABLE | StdLib::STRING | StdLib::MATH | StdLib::UTF8 | StdLib::COROUTINE;
    let lua = Lua::new_with(libraries, LuaOptions::default())?;
    lua.set_memory_limit(MEMORY_MAX)?;
    let json = lua.create_table()?;
    let encode = |lua: &Lua, value: Lual| to_json(lua, &value).map(|value| value.to_string());
    json.set("encode", lua.create_function(encode)?)?;
    json.set("decode", lua.create_function(|lua, text: mlua::String| decode(lua, &text.as_bytes()))?)?;
    json.set("null", Lual::NULL)?;
    lua.globals().set("json", json)?;
    let (asking, saying) = (hands.clone(), hands.clone());
    let ask = lua.create_function(move |lua, calls: Table| asked(lua, &asking, &calls))?;
    let say = lua.create_function(move |_, text: mlua::String| {
        said(&saying, &text.to_string_lossy());
        Ok(())
    })?;
    let array = lua.create_function(|lua, table: Option<Table>| match table {
        Some(table) => as_array(lua, table),
        None => as_array(lua, lua.create_table()?),
    })?;
    lua.load(PRELUDE).set_name("=prelude").call::<()>((ask, say, array))?;
    let counted = hands.clone();
    let triggers = HookTriggers::new().every_nth_instruction(STEPS_AT_ONCE);
    lua.set_global_hook(triggers, move |_, _| step(&counted))?;
    Ok(lua)
}

/// Counts steps. A script may catch what is raised here, and so it is also said to whoever started this.
fn step(hands: &Hands) -> mlua::Result<VmState> {
    let steps = hands.steps.get() + u64::from(STEPS_AT_ONCE);
    hands.steps.set(steps);
    if steps <= STEPS_MAX {
        return Ok(VmState::Continue);
    }
    let message = format!("it took more than {} million steps", STEPS_MAX / 1_000_000);
    if steps <= STEPS_MAX + u64::from(STEPS_AT_ONCE) {
        let printed = hands.printed.take();
        let _ = hands.line.borrow_mut().say(&Said::Failed { message: message.clone(), printed });
    }
    Err(mlua::Error::RuntimeError(message))
}

fn decode(lua: &Lua, text: &[u8]) -> mlua::Result<Lual> {
    let value: Value = serde_json::from_slice(text).map_err(|error| mlua::Error::RuntimeError(error.to_string()))?;
    from_json(lua, &value)
}

fn said(hands: &Hands, text: &str) {
    let mut printed = hands.printed.borrow_mut();
    if printed.len() > PRINTED_MAX {
        return;
    }
    printed.push_str(text);
    printed.push('\n');
    if printed.len() > PRINTED_MAX {
        let end = printed.floor_char_boundary(PRINTED_MAX);
        printed.truncate(end);
        printed.push_str("\n[it printed more than is kept]\n");
    }
}

/// Has calls made, and gives what came of each, in order.
fn asked(lua: &Lua, hands: &Hands, calls: &Table) -> mlua::Result<Table> {
    let wrong = |why: String| mlua::Error::RuntimeError(why);
    let mut wanted = Vec::new();
    for at in 1..=calls.raw_len() {
        if wanted.len() >= AT_ONCE_MAX {
            return Err(wrong(format!("at most {AT_ONCE_MAX} calls are made at once")));
        }
        let one: Table = calls.raw_get(at).map_err(|_| wrong(format!("call {at} is not a {{tool, args}}")))?;
        let tool: String = one.raw_get(1).map_err(|_| wrong(format!("call {at} names no tool")))?;
        let args = match to_json(lua, &one.raw_get(2)?)? {
            Value::Null => Value::Object(serde_json::Map::new()),
            // There is but one kind of empty table.
            Value::Array(items) if items.is_empty() => Value::Object(serde_json::Map::new()),
            args => args,
        };
        wanted.push(Wanted { tool, args });
    }
    let count = wanted.len();
    let came = if count == 0 { Vec::new() } else { hands.line.borrow_mut().ask(wanted).map_err(wrong)? };
    if came.len() != count {
        return Err(wrong("not every call was answered".to_owned()));
    }
    let list = lua.create_table()?;
    for (at, came) in came.into_iter().enumerate() {
        let table = lua.create_table()?;
        table.raw_set("ok", came.ok)?;
        table.raw_set("output", came.output)?;
        table.raw_set("truncated", came.truncated)?;
        table.raw_set("error", came.error)?;
        if !came.data.is_null() {
            table.raw_set("data", from_json(lua, &came.data)?)?;
        }
        list.raw_set(at + 1, table)?;
    }
    as_array(lua, list)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::io::Cursor;

    #[derive(Clone, Default)]
    struct Heard(Rc<RefCell<Vec<u8>>>);

    impl Write for Heard {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.borrow_mut().write(bytes)
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// Runs a script that hears these answers, and gives all that it says.
    fn told(code: &str, answers: &[Value]) -> Vec<Said> {
        let mut lines = format!("{}\n", json!({ "code": code }));
        for answer in answers {
            lines.push_str(&answer.to_string());
            lines.push('\n');
        }
        let heard = Heard::default();
        host(Cursor::new(lines.into_bytes()), heard.clone()).unwrap();
        let text = String::from_utf8(heard.0.take()).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn done(code: &str) -> Value {
        match told(code, &[]).pop().unwrap() {
            Said::Done { value, .. } => value,
            other => panic!("{code}: {other:?}"),
        }
    }

    fn failed(code: &str) -> String {
        match told(code, &[]).into_iter().next().unwrap() {
            Said::Failed { message, .. } => message,
            other => panic!("{code}: {other:?}"),
        }
    }

    #[test]
    fn a_script_asks_and_only_what_it_returns_is_said() {
        let code = "local r = call('file.read', {path = 'a'}) print(#r.output) return {n = r.data.lines, first = r.output:sub(1, 3)}";
        let said = told(code, &[json!([{"ok": true, "output": "abcdef", "data": {"lines": 2}}])]);
        let wanted = Wanted { tool: "file.read".to_owned(), args: json!({"path": "a"}) };
        assert_eq!(said[0], Said::Calls(vec![wanted]));
        assert_eq!(said[1], Said::Done { value: json!({"n": 2, "first": "abc"}), printed: "6\n".to_owned() });
    }

    #[test]
    fn what_fails_is_raised_tried_or_told() {
        let no = json!([{"ok": false, "error": "a: there is no such file"}]);
        let said = told("return call('a').output", std::slice::from_ref(&no));
        assert!(
            matches!(&said[1], Said::Failed { message, .. } if message == "script:1: a: there is no such file"),
            "{said:?}"
        );
        let said = told("local ok, why = try('a') return {ok, why}", std::slice::from_ref(&no));
        assert!(matches!(&said[1], Said::Done { value, .. } if *value == json!([false, "a: there is no such file"])));
        let two = json!([{"ok": true, "output": "x"}, {"ok": false, "error": "no"}]);
        let said = told("local r = all({{'a'}, {'b', {n = 1}}}) return {r[1].output, r[2].error}", &[two]);
        assert!(matches!(&said[1], Said::Done { value, .. } if *value == json!(["x", "no"])), "{said:?}");
    }

    #[test]
    fn there_is_nothing_but_what_is_harmless() {
        for name in
            ["load", "loadstring", "loadfile", "dofile", "require", "collectgarbage", "io", "os", "debug", "package"]
        {
            assert_eq!(done(&format!("return {name} == nil")), json!(true), "{name}");
        }
        assert_eq!(done("return string.dump == nil and ('').dump == nil"), json!(true));
        assert_eq!(
            done("local n = {} for k in pairs(_G) do n[#n + 1] = k end table.sort(n) return table.concat(n, ' ')"),
            json!(
                "_G _VERSION all assert call coroutine error getmetatable ipairs json math next pairs pcall print rawequal rawget rawlen rawset select setmetatable string table tonumber tostring try type utf8 xpcall"
            )
        );
        assert!(failed("\u{1b}Lua").contains("binary"), "what is compiled is refused");
    }

    #[test]
    fn what_has_no_end_is_ended() {
        assert!(failed("while true do end").contains("million steps"));
        assert!(failed("local f = coroutine.wrap(function() while true do end end) f()").contains("million steps"));
        let memory = "of memory";
        assert!(failed("local t = {} while true do t[#t + 1] = ('x'):rep(1 << 20) .. #t end").contains(memory));
        assert!(
            failed("return ('x'):rep(1 << 40)").contains("too large")
                || failed("return ('x'):rep(1 << 30)").contains(memory)
        );
        assert!(failed("local t = {} while true do t[#t + 1] = coroutine.create(function() end) end").contains(memory));
        assert!(failed("local function f() return f() + 1 end return f()").contains("stack overflow"));
        let said = told("for i = 1, 1e6 do print(('x'):rep(1000)) end", &[]);
        assert!(matches!(&said[0], Said::Done { printed, .. } if printed.len() < PRINTED_MAX + 100));
    }
}
