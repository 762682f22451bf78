//! `haft-stub SCRIPT.json` serves a scripted model on this machine, and says where: for shells and demonstrations.

use haft_stub::{Script, Stub};
use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    let script = match std::env::args()
        .nth(1)
        .map(|path| std::fs::read_to_string(&path).map_err(|error| format!("{path}: {error}")))
    {
        Some(Ok(text)) => Script::read(&text).map_err(|error| format!("the script cannot be read: {error}")),
        Some(Err(error)) => Err(error),
        None => Err("say which script: haft-stub SCRIPT.json".to_owned()),
    };
    match script {
        Ok(script) => {
            let stub = Stub::by(script.answers());
            let mut out = std::io::stdout();
            let _ = writeln!(out, "{}", stub.url()).and_then(|()| out.flush());
            stub.wait();
            ExitCode::SUCCESS
        }
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "{error}");
            ExitCode::from(2)
        }
    }
}
