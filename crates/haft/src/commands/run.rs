//! `haft run`: an agent does something, and a person sees it happen.

mod pulse;
mod shown;
mod streamed;

use super::call::approver;
use crate::app::{App, Failure, Threads};
use crate::cli::{Common, EffortWord, RunArgs, RunFormat};
use crate::live::{Aside, Line};
use crate::style::{self, FAINT, paint};
use crate::talks::resumed;
use haft_core::agent::Block;
use haft_core::agent::turns::End;
use haft_core::agent::wire::Effort;
use haft_core::policy::Autonomy;
use haft_core::preview::inert;
use haft_core::{CallError, Origin, SessionId};
use haft_runtime::agent::agents::told_of;
use haft_runtime::agent::{Chat, Door, Ended, ModelRef, Purse, Watch, Who, tend, told, worded};
use haft_runtime::{Approver, Haft, Halt, new_call_id};
use pulse::Pulse;
use shown::Shown;
use std::io::{IsTerminal, Read};
use std::sync::Arc;
use tokio::signal::unix::{SignalKind, signal};

/// How much may be piped in.
const PIPED_MAX: u64 = 4 << 20;
/// How it ends if somebody leaves at once.
const LEFT: u8 = 130;
/// How it ends if it was told to end.
const TERMINATED: u8 = 143;

/// Has an agent do something. Whoever reads lines reads there, too, why it could not begin.
pub(super) fn run(common: &Common, args: &RunArgs) -> Result<u8, Failure> {
    let format = if common.json() { RunFormat::Events } else { args.format };
    let failure = match act(common, args, format) {
        Err(failure) if format != RunFormat::Text => failure,
        done => return done,
    };
    match format {
        RunFormat::StreamJson => style::json(&streamed::failed(&failure)),
        RunFormat::Events | RunFormat::Text => style::json(&failure.told()),
    }
    failure.print(false);
    Ok(failure.exit_code())
}

fn act(common: &Common, args: &RunArgs, format: RunFormat) -> Result<u8, Failure> {
    let words = words(args)?;
    let app = App::open_to_run(common, &args.rules, Threads::One)?;
    let mut who = who(&app, common, args)?;
    let narrowed = match &args.role {
        Some(name) => {
            let (narrowed, role) = app.block_on(app.haft.in_role(name))?;
            if role.autonomous {
                who.autonomy = Some(Autonomy::Autonomous);
            }
            who.role = Some(role);
            Some(narrowed)
        }
        None => None,
    };
    let layer = narrowed.as_ref().unwrap_or(&app.haft);
    let line = Arc::new(Line::new(format != RunFormat::Text));
    let aside = Arc::new(Aside::new(&line, approver(&app, &args.asking)));
    let approver: Arc<dyn Approver> = Arc::<Aside>::clone(&aside);
    let (halt, pulse) = (Halt::new(), Pulse::new(&line));
    let shown = Shown::default();
    let watch = watcher(&app, (format, args.show_thinking), &who, (&shown, &pulse));
    let (ended, by) = app.block_on(async {
        let work = converse(layer, who, words, (&approver, &halt), &watch);
        let (ended, by) = until_interrupted(work, &halt, &pulse).await;
        let ended = ended.transpose()?;
        app.haft.flush().await.map(|()| (ended, by))
    })?;
    let code = match &ended {
        None => LEFT,
        Some(ended) => {
            if format == RunFormat::Text {
                shown::finish(ended, &shown);
            }
            code(ended, &aside)
        }
    };
    Ok(if by == Some(SignalKind::terminate()) { TERMINATED } else { code })
}

/// Says it, and goes on as long as there are agents in the background to hear from.
async fn converse(
    layer: &Haft,
    who: Who,
    words: String,
    (approver, halt): (&Arc<dyn Approver>, &Halt),
    watch: &Watch,
) -> Result<Ended, CallError> {
    let session = who.session.clone();
    // Without a model nothing begins that somebody might want to go on with.
    Chat::possible(layer, &who).await?;
    let mut chat = Chat::open(layer, who).await?;
    // They are stopped when this has ended, and not before: their end is part of it.
    let tending = Halt::new();
    let talk = async {
        let (mut words, mut first) = (words, true);
        loop {
            let door = Door {
                approver: approver.as_ref(),
                halt,
                origin: Origin::Cli,
                watch: Arc::clone(watch),
                meanwhile: None,
            };
            let blocks = vec![Block::Text { text: words }];
            // What an agent reports may use up what is left, and no more.
            let ended = if first { chat.say(blocks, door).await } else { chat.hear(blocks, door).await };
            first = false;
            match ended {
                Ok(ended) if ended.is_done() => match awaited(layer, &session, halt).await {
                    Some(report) => words = report,
                    None => break Ok(ended),
                },
                other => break other,
            }
        }
    };
    let tended = tend(layer, Arc::clone(approver), &tending);
    tokio::pin!(tended);
    let ended = tokio::select! {
        ended = talk => ended,
        () = &mut tended => Err(CallError::internal("nobody tends the agents any more")),
    };
    tending.cancel();
    tended.await;
    ended
}

/// Waits for the next agent in the background to end, and says what it reported. None if there is none.
async fn awaited(layer: &Haft, session: &SessionId, halt: &Halt) -> Option<String> {
    let agents = layer.agents();
    if !agents.any_running(session) {
        return None;
    }
    let running = |agents: &haft_runtime::agent::Agents| -> Vec<String> {
        let runs = agents.of(session).into_iter().filter(|child| child["state"] == "running");
        runs.filter_map(|child| child["id"].as_str().map(str::to_owned)).collect()
    };
    let (before, mut changes) = (running(agents), agents.changes());
    loop {
        let now = running(agents);
        if let Some(id) = before.iter().find(|id| !now.contains(id)) {
            let child = agents.of(session).into_iter().find(|child| child["id"] == id.as_str())?;
            let (name, text) = (child["name"].as_str().unwrap_or_default(), child["ended"]["text"].as_str());
            let words = text.unwrap_or("It failed; the log says how.");
            return Some(told_of(name, id, "it is over", words));
        }
        tokio::select! {
            news = changes.changed() => news.ok()?,
            _ = halt.stopped() => return None,
        }
    }
}

/// Waits for work; the first Ctrl-C or SIGTERM stops it cleanly, and none is left to wait for after the second. Says which of
/// them came first.
async fn until_interrupted<T>(
    work: impl Future<Output = T>,
    halt: &Halt,
    pulse: &Pulse,
) -> (Option<T>, Option<SignalKind>) {
    tokio::pin!(work);
    let mut tick = tokio::time::interval(pulse::TICK);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut terminate = signal(SignalKind::terminate()).ok();
    let mut terminated = async || match &mut terminate {
        Some(terminate) => terminate.recv().await,
        None => std::future::pending().await,
    };
    let mut by = None;
    loop {
        let came = tokio::select! {
            done = &mut work => {
                pulse.end();
                return (Some(done), by);
            }
            _ = tick.tick(), if pulse.is_seen() => {
                pulse.draw();
                continue;
            }
            Ok(()) = tokio::signal::ctrl_c() => SignalKind::interrupt(),
            Some(()) = terminated() => SignalKind::terminate(),
        };
        if by.is_some() {
            pulse.end();
            return (None, by);
        }
        by = Some(came);
        style::note(&paint(FAINT, "stopping; again to leave at once"));
        halt.cancel();
    }
}

/// What is said: the words that were typed, and what was piped in beside them.
fn words(args: &RunArgs) -> Result<String, Failure> {
    let typed = args.prompt.join(" ");
    let stdin = std::io::stdin();
    let piped = if typed.trim() == "-" || !stdin.is_terminal() {
        let mut text = String::new();
        let read = stdin.lock().take(PIPED_MAX).read_to_string(&mut text);
        read.map_err(|error| CallError::invalid(format!("stdin cannot be read: {error}")))?;
        text
    } else {
        String::new()
    };
    let typed = if typed.trim() == "-" { "" } else { typed.trim() };
    match (typed.is_empty(), piped.trim().is_empty()) {
        (false, true) => Ok(typed.to_owned()),
        (true, false) => Ok(piped.trim().to_owned()),
        (false, false) => Ok(format!("{typed}\n\n{}", piped.trim_end())),
        (true, true) if args.resume.is_some() => Ok("Go on.".to_owned()),
        (true, true) => {
            Err(CallError::invalid("nothing is to be done: say what, as in `haft run \"mend the failing test\"`")
                .hint("`haft tui` opens a conversation instead")
                .into())
        }
    }
}

fn who(app: &App, common: &Common, args: &RunArgs) -> Result<Who, Failure> {
    let read = |name: &String| ModelRef::try_from(name.clone()).map_err(CallError::invalid);
    let models = args.model.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    let mut caller = app.caller.clone();
    caller.agent.get_or_insert_with(|| "main".to_owned());
    let session = match args.resume.as_deref() {
        Some("") => app.block_on(latest(app, args))?,
        Some(named) => app.block_on(resumed(app, named))?,
        // A conversation of its own, unless somebody names one.
        None if common.session.is_none() => SessionId::new(&format!("run-{}", new_call_id())).unwrap_or_default(),
        None => app.session().clone(),
    };
    Ok(Who {
        session,
        caller,
        models,
        effort: args.effort.map(effort),
        max_turns: args.max_turns,
        max_tokens: args.max_tokens,
        instructions: args.instructions.clone(),
        purse: args.max_usd.map(|usd| Purse::new(Some(haft_runtime::agent::purse::micros(usd)))),
        ..Who::default()
    })
}

/// The latest conversation, unless the first word is the name of one: then nobody meant to say that.
async fn latest(app: &App, args: &RunArgs) -> Result<SessionId, CallError> {
    let first = args.prompt.first().and_then(|words| words.split_whitespace().next()).unwrap_or_default();
    let named = SessionId::new(first).filter(|_| first.contains('-'));
    let known = match &named {
        Some(session) => app.store().talk(session).await.is_ok_and(|talk| talk.is_some()),
        None => false,
    };
    if known {
        return Err(CallError::invalid(format!("`{first}` is a conversation, and would be said to the latest one"))
            .hint(format!("`--resume={first}`, with the sign, goes on with that")));
    }
    resumed(app, "").await
}

fn effort(word: EffortWord) -> Effort {
    match word {
        EffortWord::Off => Effort::Off,
        EffortWord::Low => Effort::Low,
        EffortWord::Medium => Effort::Medium,
        EffortWord::High => Effort::High,
        EffortWord::Max => Effort::Max,
    }
}

fn watcher(app: &App, (format, thinking): (RunFormat, bool), who: &Who, (shown, pulse): (&Shown, &Pulse)) -> Watch {
    let inner: Watch = match format {
        RunFormat::Events => Arc::new(style::json),
        RunFormat::StreamJson => streamed::watch(&app.haft, who),
        RunFormat::Text => shown::watch(thinking, shown, pulse),
    };
    let bus = told::on_the_bus(app.haft.events().clone(), who.session.clone());
    Arc::new(move |told| {
        inner(told);
        bus(told);
    })
}

fn code(ended: &Ended, aside: &Aside) -> u8 {
    if aside.unanswered() > 0 {
        style::warn(&format!("{} calls wait for a person: `haft approvals` shows them", aside.unanswered()));
    }
    if ended.end == End::Done {
        return aside.code(0);
    }
    style::note(&format!("{} {}", paint(style::CARE, "ended early:"), inert(&worded(&ended.end))));
    if ended.end == End::Time { 6 } else { 1 }
}
