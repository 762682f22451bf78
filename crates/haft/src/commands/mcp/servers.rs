//! `haft mcp add`, `list`, `remove`, `test` and `import`: the servers whose tools haft offers as its own.

mod edit;
mod foreign;
mod sign_in;

use crate::app::{App, Failure, Ground};
use crate::cli::{Common, McpAdd};
use crate::config::{Hosts, Net, Permissions, Server, Spot, Start, Text};
use crate::started_by::require_user;
use crate::style::{self, BAD, BOLD, CARE, FAINT, GOOD, NAME, paint};
use edit::File;
use haft_core::CallError;
use haft_mcp::client::{Bridge, State, Status};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bridges a server: enters it in the configuration, starts it once, and accepts what it says of its tools.
pub(super) fn add(common: &Common, args: &McpAdd) -> Result<u8, Failure> {
    require_user()?;
    let ground = Ground::find(common)?;
    let place = if args.project { ground.paths.project_config() } else { ground.paths.user_config() };
    let file = if args.project { File::open_in(ground.paths.root(), &place)? } else { File::open(&place)? };
    let entered = file.with(&[(args.name.clone(), entry(args)?)])?;
    entered.keep()?;
    if !common.json() {
        style::note(&format!("{} {} in {}", paint(GOOD, "entered"), args.name, ground.paths.shown(&place)));
    }
    if args.project {
        style::note("it counts once you have run `haft trust`");
        return Ok(0);
    }
    // What somebody else was called before is forgotten: the name means this server from now on.
    let app = App::open(common)?;
    app.block_on(app.store().unpin(&args.name))?;
    drop(app);
    meet(common, &args.name, Accept::All)
}

/// What the entry says.
fn entry(args: &McpAdd) -> Result<Server, CallError> {
    let text = |value: &str| Text::new(value, Spot::Flag("haft mcp add"));
    let pair = |given: &String, sign: char, what: &str| {
        let (name, value) =
            given.split_once(sign).ok_or_else(|| CallError::invalid(format!("`{given}` is no {what}")))?;
        Ok::<_, CallError>((name.trim().to_owned(), value.trim_start().to_owned()))
    };
    let path = |path: &PathBuf| {
        let path =
            std::path::absolute(path).map_err(|error| CallError::invalid(format!("{}: {error}", path.display())))?;
        Ok::<_, CallError>(text(&path.to_string_lossy()))
    };
    if args.command.is_empty() && args.url.is_none() {
        return Err(CallError::invalid("nothing to bridge: name a program after `--`, or an address with --url")
            .hint("haft mcp add files -- npx -y @modelcontextprotocol/server-filesystem ."));
    }
    Ok(Server {
        command: args.command.first().map(|program| text(program)),
        args: args.command.iter().skip(1).cloned().collect(),
        env: args.env.iter().map(|given| pair(given, '=', "variable like NAME=VALUE")).collect::<Result<_, _>>()?,
        url: args.url.as_deref().map(text),
        headers: args
            .header
            .iter()
            .map(|given| pair(given, ':', "header like NAME: VALUE"))
            .collect::<Result<_, _>>()?,
        permissions: Permissions { network: network(args.net.as_deref()), ..Permissions::default() },
        read: args.read.iter().map(path).collect::<Result<_, _>>()?,
        write: args.write.iter().map(path).collect::<Result<_, _>>()?,
        start: args.eager.then_some(Start::Eager),
        ..Server::default()
    })
}

fn network(said: Option<&str>) -> Option<Net> {
    match said? {
        "none" => Some(Net::Switch(false)),
        "all" => Some(Net::Switch(true)),
        hosts => {
            let text = |host: &str| Text::new(host.trim(), Spot::Flag("--net"));
            Some(Net::Hosts(Hosts { allow: hosts.split(',').map(text).collect() }))
        }
    }
}

/// Which declarations are accepted when a server is met.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Accept {
    /// Only those of a server that was never met.
    New,
    /// All, also those that have changed.
    All,
}

/// Starts a bridged server and says what it offers.
pub(super) fn test(common: &Common, name: &str, accept: bool) -> Result<u8, Failure> {
    if accept {
        require_user()?;
    }
    meet(common, name, if accept { Accept::All } else { Accept::New })
}

fn meet(common: &Common, name: &str, accept: Accept) -> Result<u8, Failure> {
    let app = App::open(common)?;
    let bridge = bridge(&app, name)?;
    let met = app.block_on(async {
        let met = bridge.start(name).await;
        let met = match met {
            Err(error) if sign_in::is_wanted(&error) => {
                sign_in::run(&app, name, &error).await?;
                bridge.start_anew(name).await
            }
            met => met,
        };
        if met.is_ok() && accept == Accept::All {
            bridge.accept(name).await?;
        }
        met
    });
    let status = met.map(|_| bridge.status().into_iter().find(|status| status.name == name))?;
    let Some(status) = status else { return Err(CallError::internal("the server is gone").into()) };
    if app.json {
        style::json(&status);
    } else {
        show(&app, &status);
    }
    Ok(0)
}

fn bridge<'a>(app: &'a App, name: &str) -> Result<&'a Bridge, CallError> {
    app.bridge().map(Arc::as_ref).ok_or_else(|| {
        let shown = haft_core::preview::inert(name);
        CallError::not_found(format!("there is no MCP server `{shown}`")).hint("`haft mcp add` bridges one")
    })
}

/// One server in full.
fn show(app: &App, status: &Status) {
    style::out(&format!("{} {}", paint(BOLD, &status.name), state(status)));
    for tool in &status.tools {
        let entry = app.haft.registry().get(tool);
        let said = entry.map(|entry| entry.spec().description.lines().next().unwrap_or_default().to_owned());
        let said = haft_core::preview::cut(&haft_core::preview::inert(&said.unwrap_or_default()), 90);
        style::out(&format!("  {}  {said}", paint(NAME, tool)));
    }
    for altered in &status.altered {
        style::out(&format!("  {} {}", paint(CARE, "altered:"), haft_core::preview::inert(altered)));
    }
    for refused in &status.refused {
        style::out(&format!("  {} {}", paint(BAD, "not offered:"), haft_core::preview::inert(refused)));
    }
    status.provider_warnings.iter().for_each(|warning| style::warn(warning));
    if let Some(garbage) = &status.garbage {
        let last = haft_core::preview::inert(&garbage.last);
        style::warn(&format!("it printed {} lines that are no MCP; the last: {last}", garbage.lines));
    }
    if !status.altered.is_empty() {
        style::note(&format!("what has changed is asked about; `haft mcp test {} --accept` accepts it", status.name));
    }
}

fn state(status: &Status) -> String {
    let tone = match status.state {
        State::Ready => GOOD,
        State::Waiting { .. } | State::Failed => BAD,
        State::Idle | State::Starting | State::Closed => FAINT,
    };
    let count = match status.tools.len() {
        1 => "1 tool".to_owned(),
        count => format!("{count} tools"),
    };
    let altered = if status.altered.is_empty() { String::new() } else { format!(", {} altered", status.altered.len()) };
    format!("{} {}", paint(tone, status.state.word()), paint(FAINT, format!("{count}{altered}")))
}

/// Lists the bridged servers, as they are known. Nothing is started for it.
pub(super) fn list(common: &Common) -> Result<u8, Failure> {
    let app = App::open(common)?;
    let all = app.bridge().map(|bridge| bridge.status()).unwrap_or_default();
    if app.json {
        style::json(&json!({ "servers": all }));
        return Ok(0);
    }
    let width = all.iter().map(|status| status.name.len()).max().unwrap_or_default();
    for status in &all {
        let known = if status.tools.is_empty() { paint(FAINT, "not met yet") } else { state(status) };
        style::out(&format!("{}{}  {known}", paint(NAME, &status.name), " ".repeat(width - status.name.len())));
    }
    if all.is_empty() {
        style::note("no MCP server is bridged; `haft mcp add NAME -- CMD` bridges one");
    }
    Ok(0)
}

/// Bridges a server no longer: takes its entry out, and forgets what was accepted of it and its tokens.
pub(super) fn remove(common: &Common, name: &str) -> Result<u8, Failure> {
    require_user()?;
    let ground = Ground::find(common)?;
    let places = [ground.paths.user_config(), ground.paths.project_config()];
    let mut taken = None;
    for place in places {
        let mut file = File::open(&place)?;
        if file.has(name) {
            if place == ground.paths.project_config() {
                file = File::open_in(ground.paths.root(), &place)?;
            }
            file.without(name)?.keep()?;
            taken = Some(place);
            break;
        }
    }
    let Some(place) = taken else {
        let shown = haft_core::preview::inert(name);
        return Err(CallError::not_found(format!("there is no MCP server `{shown}`"))
            .hint("`haft mcp list` lists them")
            .into());
    };
    let app = App::open(common)?;
    app.block_on(app.store().unpin(name))?;
    haft_mcp::client::oauth::forget(&app.haft.settings().data_dir.join("oauth"), name);
    if app.json {
        style::json(&json!({ "removed": name, "file": place }));
    } else {
        style::out(&format!("{} {name} from {}", paint(GOOD, "removed"), ground.paths.shown(&place)));
    }
    Ok(0)
}

/// Whether an entry starts haft: what haft was entered as there is no server to bridge.
fn is_haft(server: &Server) -> bool {
    let program = server.command.as_ref().and_then(|command| Path::new(command.as_str()).file_name());
    program.is_some_and(|name| name == "haft") && server.args.iter().any(|word| word == "mcp")
}

/// Takes over servers from another client's configuration. Nothing is started: what a client was allowed to run
/// unconfined is met here when it is wanted.
pub(super) fn import(common: &Common, path: &Path, print: bool) -> Result<u8, Failure> {
    if !print {
        require_user()?;
    }
    let ground = Ground::find(common)?;
    let found = foreign::read(path)?;
    let file = File::open(&ground.paths.user_config())?;
    let fresh = found.into_iter().filter(|(name, server)| {
        if is_haft(server) {
            style::warn(&format!("`{name}` is haft itself, and is left out"));
            return false;
        }
        let known = file.has(name);
        if known {
            style::warn(&format!("`{name}` is bridged already, and stays as it is"));
        }
        !known
    });
    let fresh: Vec<(String, Server)> = fresh.collect();
    if print {
        style::out(edit::snippet(&fresh).trim_end());
        return Ok(0);
    }
    if fresh.is_empty() {
        style::note("nothing to add");
        return Ok(0);
    }
    file.with(&fresh)?.keep()?;
    let names: Vec<&String> = fresh.iter().map(|(name, _)| name).collect();
    if common.json() {
        style::json(&json!({ "added": names }));
    } else {
        let list = names.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(", ");
        style::out(&format!("{} {list}", paint(GOOD, "added")));
        style::note(
            "they run confined: give them what they need with `read`, `write` and `permissions` (docs/bridge.md)",
        );
    }
    Ok(0)
}
