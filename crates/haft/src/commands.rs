//! What each command means. `run` is the whole program on one screen.

mod agents;
mod api;
mod approvals;
mod batch;
mod call;
mod config;
mod confine;
mod doctor;
mod explain;
mod hook;
mod import;
mod lint;
mod log;
mod mcp;
mod memory;
mod models;
mod new;
mod pipeline;
mod policy;
mod recall;
mod reference;
mod run;
mod secret;
mod serve;
mod session;
mod setup;
mod skills;
mod store;
mod task;
mod test;
mod tools;
mod trust;
mod worker;

use crate::app::{App, Failure};
use crate::cli::{Cli, Command};
use std::process::ExitCode;

/// Does what was typed, and says how it went.
pub fn run(cli: Cli) -> ExitCode {
    crate::style::choose(cli.common.color);
    let json = cli.common.json();
    let _telemetry = crate::telemetry::Telemetry::start(&cli);
    match dispatch(cli) {
        Ok(_) if crate::style::stdout_failed() => {
            crate::style::warn("not everything could be written to stdout");
            ExitCode::from(7)
        }
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            failure.print(json);
            ExitCode::from(failure.exit_code())
        }
    }
}

fn dispatch(cli: Cli) -> Result<u8, Failure> {
    let common = &cli.common;
    match cli.command {
        Command::Run(args) => run::run(common, &args),
        Command::Tools(args) => tools::run(&App::open(common)?, &args),
        Command::Call(args) => call::one(&App::open_with(common, &args.rules)?, &args),
        Command::Batch(args) => batch::run(&App::open_with(common, &args.rules)?, &args),
        Command::Explain(args) => explain::run(&App::open_with(common, &args.rules)?, &args),
        Command::Approvals(args) => approvals::run(&App::open(common)?, args.action),
        Command::Log(args) => log::run(&App::open_to_look_back(common)?, &args),
        Command::Policy(args) => policy::run(common, &args.action),
        Command::Undo(args) => recall::undo(&App::open_to_look_back(common)?, common, &args),
        Command::Changes(args) => recall::changes(&App::open_to_look_back(common)?, common, &args),
        Command::Confine(args) => Ok(confine::run(&args)),
        Command::Mcp(args) => mcp::run(common, args),
        Command::Hook(args) => Ok(hook::run(common, &args)),
        Command::Serve(args) => serve::run(common, &args),
        Command::Tui(args) => crate::tui::run(common, args),
        Command::Pipeline(args) => pipeline::run(&App::open(common)?, args.action),
        Command::Agents(args) => agents::run(&App::open(common)?, args.action),
        Command::Session(args) => session::run(&App::open(common)?, args.action),
        Command::Worker(args) => worker::run(common, &args),
        Command::Api(args) => api::run(&App::open(common)?, args.action),
        Command::Skills(args) => skills::run(common, &args),
        Command::Lint(args) => lint::run(common, &args),
        Command::New(args) => new::run(common, &args),
        Command::Import(args) => import::run(&App::open(common)?, args.from),
        Command::Memory(args) => memory::run(&App::open(common)?, args.action),
        Command::Models(args) => models::run(&App::open(common)?, args.action),
        Command::Secret(args) => secret::run(common, args.action),
        Command::Task(args) => task::run(&App::open(common)?, args.action),
        Command::Config(args) => config::run(common, &args),
        Command::Init => setup::init(common),
        Command::Trust(args) => trust::run(common, &args),
        Command::Test(args) => test::run(&App::open(common)?, &args),
        Command::Store(args) => store::run(common, args.action),
        Command::Doctor => Ok(doctor::run(common)),
        Command::Completions { shell } => Ok(reference::completions(shell)),
        Command::Man { command } => reference::man(command.as_deref()),
        // Tidied up after by whoever waits for it: nobody reads what it would print.
        Command::Keep => haft_runtime::task::keep(std::io::stdin(), std::io::stdout()).map(|()| 0).map_err(Into::into),
        Command::Script => {
            haft_runtime::script::host(std::io::stdin().lock(), std::io::stdout()).map(|()| 0).map_err(Into::into)
        }
        Command::Docs { kind } => Ok(reference::docs(kind)),
    }
}
