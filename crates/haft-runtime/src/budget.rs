//! Which tools a model is told about when telling it about all of them costs too much.
//!
//! Deciding is pure: names and costs in, names out. What is left out can still be called by its name, and is found
//! with `tool.search`.

use haft_core::ToolName;

/// The tools that matter most, in this order; then the others by name; then those of bridged servers.
const CORE: [&str; 7] = ["file.read", "file.edit", "shell.exec", "file.write", "file.grep", "file.glob", "file.list"];
/// What tools that somebody made as files may cost besides: this part of the budget. They are there because they are
/// wanted here, and must not crowd out what every task needs.
const MADE_SHARE: usize = 4;
/// The ways to everything that is left out.
const WAYS: [&str; 2] = ["tool.search", "tool.call"];

/// A tool and about how many tokens its declaration costs.
#[derive(Debug, Clone)]
pub struct Priced {
    /// Which.
    pub name: ToolName,
    /// Tokens.
    pub tokens: usize,
}

/// The tools to list for about `budget` tokens, sorted by name. A budget of 0 lists all of them. If anything is left
/// out, the tools to find and call it with are listed whatever they cost. Tools that somebody made as files come on top,
/// for at most a quarter more.
pub fn listed(tools: &[Priced], budget: usize) -> Vec<ToolName> {
    let all: usize = tools.iter().map(|tool| tool.tokens).sum();
    let mut chosen: Vec<&Priced> = tools.iter().collect();
    if budget > 0 && all > budget {
        let (ways, mut rest): (Vec<&Priced>, Vec<&Priced>) =
            tools.iter().partition(|tool| WAYS.contains(&tool.name.as_str()));
        rest.sort_by_key(|tool| rank(&tool.name));
        let (made, rest): (Vec<&Priced>, Vec<&Priced>) = rest.into_iter().partition(|tool| is_made(&tool.name));
        let left = budget.saturating_sub(ways.iter().map(|tool| tool.tokens).sum());
        chosen = ways;
        chosen.extend(fitting(&made, budget / MADE_SHARE));
        chosen.extend(fitting(&rest, left));
    }
    let mut names: Vec<ToolName> = chosen.into_iter().map(|tool| tool.name.clone()).collect();
    names.sort();
    names
}

/// The first of these that fit. One that does not ends it: a lesser tool must not stand in for a greater one.
fn fitting<'t>(tools: &[&'t Priced], mut left: usize) -> Vec<&'t Priced> {
    let fits = |tool: &&&Priced| left.checked_sub(tool.tokens).map(|after| left = after).is_some();
    tools.iter().take_while(fits).copied().collect()
}

/// Whether a manifest made it: only those have plain names.
fn is_made(name: &ToolName) -> bool {
    !name.as_str().contains(['.', ':'])
}

/// Lower matters more.
fn rank(name: &ToolName) -> (usize, bool, ToolName) {
    let place = CORE.iter().position(|core| *core == name.as_str()).unwrap_or(CORE.len());
    (place, name.family() == "mcp", name.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tools(names: &[&str]) -> Vec<Priced> {
        names.iter().map(|name| Priced { name: ToolName::new(name).unwrap(), tokens: 100 }).collect()
    }

    fn chosen(names: &[&str], budget: usize) -> Vec<String> {
        listed(&tools(names), budget).iter().map(ToString::to_string).collect()
    }

    const MANY: [&str; 7] =
        ["calc.eval", "file.edit", "file.read", "mcp:a:first", "shell.exec", "tool.call", "tool.search"];

    #[test]
    fn what_matters_most_comes_first_and_the_ways_to_the_rest_always() {
        assert_eq!(chosen(&MANY, 400), ["file.edit", "file.read", "tool.call", "tool.search"]);
        assert_eq!(
            chosen(&MANY, 600),
            ["calc.eval", "file.edit", "file.read", "shell.exec", "tool.call", "tool.search"]
        );
        assert_eq!(chosen(&MANY, 1), ["tool.call", "tool.search"]);
    }

    #[test]
    fn what_somebody_made_comes_on_top_within_bounds() {
        let names = ["calc.eval", "file.read", "forecast", "shell.exec", "tool.call", "tool.search", "weather"];
        assert_eq!(chosen(&names, 400), ["file.read", "forecast", "shell.exec", "tool.call", "tool.search"]);
        assert_eq!(chosen(&names, 300), ["file.read", "tool.call", "tool.search"]);
    }

    #[test]
    fn everything_is_listed_where_it_fits_or_nothing_limits_it() {
        assert_eq!(chosen(&MANY, 700), MANY);
        assert_eq!(chosen(&MANY, 0), MANY);
    }
}
