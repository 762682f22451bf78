//! An entry in a TOML or YAML file, as text: every other byte stays what it is.

use super::clients::NAME;
use serde_json::Value;
use std::ops::Range;

/// The table of the entry. JSON's strings and lists are TOML's, too.
pub(super) fn toml_section(entry: &Value) -> String {
    let members = entry.as_object().into_iter().flatten();
    let lines = members.map(|(name, value)| format!("{name} = {value}\n"));
    format!("[mcp_servers.{NAME}]\n{}", lines.collect::<String>())
}

/// The text with the table in it, or why it cannot be entered.
pub(super) fn toml(old: &str, section: &str) -> Result<String, String> {
    let own = [format!("[mcp_servers.{NAME}]"), format!("[mcp_servers.\"{NAME}\"]"), format!("[mcp_servers.'{NAME}']")];
    let lines = toml_lines(old);
    // Blanks in the name of a table mean nothing.
    let table = |line: &str| line.split('#').next().unwrap_or("").split_whitespace().collect::<String>();
    if lines.iter().any(|(_, line)| matches!(table(line).as_str(), "[mcp_servers]" | "[\"mcp_servers\"]")) {
        return Err("`mcp_servers` is a table of its own there".to_owned());
    }
    let inline = |line: &str| {
        line.split_once('=')
            .is_some_and(|(name, _)| name.trim() == "mcp_servers" || name.trim().starts_with("mcp_servers."))
    };
    if lines.iter().any(|(_, line)| inline(line)) {
        return Err("`mcp_servers` is written in one line there".to_owned());
    }
    let head = lines.iter().position(|(_, line)| own.contains(&table(line)));
    let Some(head) = head else { return Ok(appended(old, section)) };
    // What stands before the next table, as comments do, is about that one.
    let after = lines[head + 1..].iter().take_while(|(_, line)| !line.starts_with('['));
    let last = after.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')).last().unwrap_or(&lines[head]);
    let (begin, end) = (lines[head].0.start, last.0.end);
    if old[begin..end].trim_end() == section.trim_end() {
        return Ok(old.to_owned());
    }
    Ok(format!("{}{section}{}", &old[..begin], &old[end..]))
}

/// The lines that are not inside a long string, without blanks at their ends, and where they are.
fn toml_lines(text: &str) -> Vec<(Range<usize>, &str)> {
    let (mut lines, mut at, mut within): (_, usize, Option<&str>) = (Vec::new(), 0, None);
    for line in text.split_inclusive('\n') {
        let range = at..at + line.len();
        at = range.end;
        let marks = |mark: &str| line.matches(mark).count() % 2 == 1;
        match within {
            Some(mark) if marks(mark) => within = None,
            Some(_) => {}
            None => {
                lines.push((range, line.trim()));
                within = ["\"\"\"", "'''"].into_iter().find(|mark| marks(mark));
            }
        }
    }
    lines
}

fn appended(old: &str, section: &str) -> String {
    let gap = match old {
        "" => "",
        old if old.ends_with("\n\n") => "",
        old if old.ends_with('\n') => "\n",
        _ => "\n\n",
    };
    format!("{old}{gap}{section}")
}

/// The entry as a YAML block, `indent` deep. JSON's strings and lists are YAML's, too.
pub(super) fn yaml_block(entry: &Value, indent: &str) -> String {
    let members = entry.as_object().into_iter().flatten();
    let lines = members.map(|(name, value)| format!("{indent}{indent}{name}: {value}\n"));
    format!("{indent}{NAME}:\n{}", lines.collect::<String>())
}

/// The text with the entry in it, or why it cannot be entered. What comes out is read again and must say what was
/// meant.
pub(super) fn yaml(old: &str, entry: &Value) -> Result<String, String> {
    let before = parsed(old)?;
    if before.pointer(&format!("/extensions/{NAME}")) == Some(entry) {
        return Ok(old.to_owned());
    }
    let new = yaml_edited(old, entry).ok_or("`extensions` in it is not written as a block")?;
    let mut meant = before;
    if !meant.is_object() {
        meant = Value::Object(serde_json::Map::new());
    }
    if !meant["extensions"].is_object() {
        meant["extensions"] = Value::Object(serde_json::Map::new());
    }
    meant["extensions"][NAME] = entry.clone();
    if parsed(&new)? == meant { Ok(new) } else { Err("its form is too unusual to change it safely".to_owned()) }
}

fn parsed(text: &str) -> Result<Value, String> {
    if text.trim().is_empty() {
        return Ok(Value::Null);
    }
    serde_saphyr::from_str(text).map_err(|error| format!("it is not YAML that can be read: {error}"))
}

fn yaml_edited(old: &str, entry: &Value) -> Option<String> {
    let lines: Vec<&str> = old.split_inclusive('\n').collect();
    let depth = |line: &str| line.len() - line.trim_start_matches(' ').len();
    let says = |line: &str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    let Some(head) = lines.iter().position(|line| line.starts_with("extensions:")) else {
        let gap = if old.is_empty() || old.ends_with('\n') { "" } else { "\n" };
        return Some(format!("{old}{gap}extensions:\n{}", yaml_block(entry, "  ")));
    };
    let said = lines[head]["extensions:".len()..].split('#').next().unwrap_or_default().trim();
    let empty = said == "{}" || said == "null" || said == "~";
    if !said.is_empty() && !empty {
        return None;
    }
    let children = |from: usize| lines[from..].iter().position(|line| says(line)).map(|at| from + at);
    let first = children(head + 1).filter(|at| depth(lines[*at]) > 0);
    let indent = first.map_or(2, |at| depth(lines[at]));
    let block = yaml_block(entry, &" ".repeat(indent));
    let own = (head + 1..lines.len())
        .take_while(|at| !says(lines[*at]) || depth(lines[*at]) > 0)
        .find(|at| depth(lines[*at]) == indent && lines[*at].trim_end() == format!("{}{NAME}:", " ".repeat(indent)));
    let (begin, end) = match own {
        Some(own) => {
            let next = (own + 1..lines.len()).find(|at| says(lines[*at]) && depth(lines[*at]) <= indent);
            (own, next.unwrap_or(lines.len()))
        }
        None => (head + 1, head + 1),
    };
    let top = if empty { "extensions:\n".to_owned() } else { with_end(lines[head]) };
    let before = format!("{}{top}{}", lines[..head].concat(), lines[head + 1..begin].concat());
    Some(format!("{before}{block}{}", lines[end..].concat()))
}

fn with_end(line: &str) -> String {
    format!("{}\n", line.trim_end_matches('\n'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn section() -> String {
        toml_section(&json!({"command": "/bin/haft", "args": ["mcp"]}))
    }

    #[test]
    fn a_table_is_added_or_replaced_and_nothing_else_changes() {
        let old = "# mine\nmodel = \"x\"\n\n[mcp_servers.other]\ncommand = \"y\"\n";
        let new = toml(old, &section()).unwrap();
        assert_eq!(new, format!("{old}\n[mcp_servers.haft]\ncommand = \"/bin/haft\"\nargs = [\"mcp\"]\n"));
        assert_eq!(toml(&new, &section()).unwrap(), new);
        let rest = "\n# about the other\n[mcp_servers.other]\ncommand = \"y\"\n";
        let stale = format!("[mcp_servers.haft]\ncommand = \"old\"\n{rest}");
        assert_eq!(toml(&stale, &section()).unwrap(), format!("{}{rest}", section()));
    }

    #[test]
    fn a_table_inside_a_string_is_no_table() {
        let old = "text = \"\"\"\n[mcp_servers.haft]\n\"\"\"\n";
        assert!(toml(old, &section()).unwrap().starts_with(old));
        assert!(toml("mcp_servers = { a = 1 }\n", &section()).is_err());
        assert!(toml("[mcp_servers]\nhaft = { command = \"x\" }\n", &section()).is_err());
        assert_eq!(toml("[ mcp_servers . 'haft' ] # mine\ncommand = \"x\"\n", &section()).unwrap(), section());
    }

    #[test]
    fn an_extension_is_added_or_replaced_and_nothing_else_changes() {
        let entry = json!({"name": "haft", "type": "stdio", "cmd": "haft", "args": ["mcp"], "enabled": true});
        let block = yaml_block(&entry, "  ");
        let old = "# mine\nGOOSE_MODEL: x\nextensions:\n  memory:\n    enabled: true # yes\n\nafter: 1\n";
        let new = yaml(old, &entry).unwrap();
        assert_eq!(new, old.replace("extensions:\n", &format!("extensions:\n{block}")));
        assert_eq!(yaml(&new, &entry).unwrap(), new);
        let stale = new.replace("cmd: \"haft\"", "cmd: \"old\"");
        assert_eq!(yaml(&stale, &entry).unwrap(), new);
        assert_eq!(yaml("", &entry).unwrap(), format!("extensions:\n{block}"));
        assert_eq!(yaml("extensions: {}\n", &entry).unwrap(), format!("extensions:\n{block}"));
        assert!(yaml("extensions: {a: {enabled: true}}\n", &entry).is_err());
    }
}
