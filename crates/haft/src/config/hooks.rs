//! Hooks that are programs or addresses, as the configuration says them.

use super::error::ConfigError;
use super::file::Hooks;
use super::names::Names;
use super::placed::{Spot, Text};
use haft_core::web::Target;
use haft_runtime::hooked::{Asks, Hook, HookSettings, TIMEOUT};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

/// The longest that a hook may take.
const LONGEST_MS: u64 = 600_000;

/// One hook: a program or an address.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HookSaid {
    /// The tools it is about. Absent: every tool.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<Text>,
    /// The program and its arguments. It runs in the project, as you, and is not confined.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<Text>,
    /// The address that is asked by POST, instead of a program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<Text>,
    /// How long it may take (default 10000).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

impl HookSaid {
    pub(super) fn each_spot(&mut self, visit: &mut dyn FnMut(&mut Spot)) {
        for text in self.tools.iter_mut().chain(&mut self.command).chain(&mut self.url) {
            visit(&mut text.spot);
        }
    }

    fn wanted(&self, names: &mut Names<'_>) -> Result<Hook, ConfigError> {
        let spot = || {
            let first = self.command.first().or(self.url.as_ref()).or(self.tools.first());
            first.map_or(Spot::BuiltIn, |text| text.spot.clone())
        };
        let wrong = |why: &str| ConfigError::malformed(&spot(), why);
        let (name, asks) = match (self.command.as_slice(), &self.url) {
            ([program, ..], None) => {
                let name = Path::new(&program.value).file_name().map(|name| name.to_string_lossy().into_owned());
                let argv = self.command.iter().map(|word| word.value.clone()).collect();
                (name.unwrap_or_else(|| program.value.clone()), Asks::Program(argv))
            }
            ([], Some(url)) => {
                let target = Target::read(&url.value);
                let target = target.map_err(|error| ConfigError::malformed(&url.spot, error.to_string()))?;
                (target.authority(), Asks::Address(target, OnceLock::new()))
            }
            ([], None) => return Err(wrong("a hook needs a `command` or a `url`")),
            (_, Some(_)) => return Err(wrong("a hook has a `command` or a `url`, not both")),
        };
        if self.timeout_ms.is_some_and(|ms| ms == 0 || ms > LONGEST_MS) {
            return Err(wrong("`timeout_ms` of a hook is 1 to 600000"));
        }
        let timeout = self.timeout_ms.map_or(TIMEOUT, Duration::from_millis);
        Ok(Hook { name, tools: names.patterns(&self.tools)?, asks, timeout })
    }
}

impl Hooks {
    /// What the runtime is told of the programs and addresses.
    pub(super) fn wanted(&self, names: &mut Names<'_>) -> Result<HookSettings, ConfigError> {
        let mut all = |list: &[HookSaid]| list.iter().map(|hook| hook.wanted(names)).collect::<Result<Vec<_>, _>>();
        Ok(HookSettings { before: all(&self.before)?, after: all(&self.after)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use haft_core::ToolName;

    fn said(yaml: &str) -> Result<HookSettings, String> {
        let known = [ToolName::new("shell.exec").unwrap()];
        let config = super::super::parse(yaml.as_bytes(), &"config.yml".into()).map_err(|error| error.to_string())?;
        config.hooks.wanted(&mut Names::new(&known)).map_err(|error| error.to_string())
    }

    #[test]
    fn a_hook_is_a_program_or_an_address() {
        let hooks = said(
            "hooks: {before: [{tools: [shell.exec], command: [/usr/bin/check, -v]}], \
             after: [{url: 'http://127.0.0.1:8080/x', timeout_ms: 500}]}",
        )
        .unwrap();
        let ([before], [after]) = (hooks.before.as_slice(), hooks.after.as_slice()) else { panic!("{hooks:?}") };
        assert_eq!((before.name.as_str(), before.timeout, before.tools.len()), ("check", TIMEOUT, 1));
        assert!(matches!(&before.asks, Asks::Program(argv) if argv == &["/usr/bin/check", "-v"]));
        assert_eq!((after.name.as_str(), after.timeout), ("127.0.0.1:8080", Duration::from_millis(500)));
    }

    #[test]
    fn mistakes_are_pointed_at() {
        for (yaml, why) in [
            ("hooks: {before: [{tools: [shell.exec]}]}", "needs a `command` or a `url`"),
            ("hooks: {before: [{command: [a], url: 'http://a.example'}]}", "not both"),
            ("hooks: {after: [{url: 'ftp://a.example'}]}", "only http and https"),
            ("hooks: {before: [{command: [a], timeout_ms: 0}]}", "1 to 600000"),
            ("hooks: {before: [{command: [a], tools: [shell.exce]}]}", "shell.exec"),
            ("hooks: {before: [{commands: [a]}]}", "commands"),
        ] {
            let error = said(yaml).unwrap_err();
            assert!(error.contains(why), "{yaml}: {error}");
        }
    }
}
