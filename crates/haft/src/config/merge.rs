//! How layers join. Lists add up; of single values the nearest counts. This is the whole rule, and what
//! an untrusted project may not say has been taken out of its layer before ([`super::untrusted`]).

use super::file::{Approval, Config, Files, FloorRule, Hooks, Narrowing, Preset, Rules, Undo};
use super::placed::{Placed, Spot, Text};
use std::collections::BTreeMap;

/// Adds what is not there yet, in order.
fn join<T: PartialEq>(list: &mut Vec<T>, more: Vec<T>) {
    for item in more {
        if !list.contains(&item) {
            list.push(item);
        }
    }
}

/// The nearer value, where there is one.
pub(super) fn nearer<T>(value: &mut Option<T>, said: Option<T>) {
    if said.is_some() {
        *value = said;
    }
}

impl Config {
    /// Adds a nearer layer. Every field is named, so that a new setting cannot be forgotten here.
    pub(super) fn add(&mut self, layer: Config) {
        let Config {
            profile,
            profiles,
            deny,
            agents,
            providers,
            hooks,
            autonomy,
            floor,
            approval,
            rules,
            commands,
            files,
            permissions,
            confinement,
            shell,
            undo,
            kept,
            mcp,
            tools,
            gateway,
            web,
            browser,
            media,
            memory,
            models,
            agent,
            security,
            secrets,
            dialect,
            store,
        } = layer;
        nearer(&mut self.profile, profile);
        // The farther definition stays: a project must not give the user's words another meaning.
        for (name, rules) in profiles {
            self.profiles.entry(name).or_insert(rules);
        }
        join(&mut self.deny, deny);
        add_narrowings(&mut self.agents, agents);
        add_narrowings(&mut self.providers, providers);
        self.hooks.add(hooks);
        nearer(&mut self.autonomy, autonomy);
        join(&mut self.floor, floor);
        self.approval.add(approval);
        join(&mut self.rules, rules);
        // The farther entry stays, as with profiles.
        for (name, entry) in commands {
            self.commands.entry(name).or_insert(entry);
        }
        join(&mut self.files.read, files.read);
        join(&mut self.files.write, files.write);
        self.permissions.add(permissions);
        self.confinement.add(confinement);
        self.shell.add(shell);
        self.undo.add(&undo);
        nearer(&mut self.kept.keep_days, kept.keep_days);
        nearer(&mut self.kept.max_total_bytes, kept.max_total_bytes);
        nearer(&mut self.kept.log_days, kept.log_days);
        self.mcp.add(mcp);
        self.tools.add(&tools);
        self.gateway.add(gateway);
        self.web.add(web);
        self.browser.add(browser);
        self.media.add(media);
        self.memory.add(memory);
        self.models.add(models);
        self.agent.add(agent);
        self.security.add(security);
        // The farther entry stays, as with profiles.
        for (name, entry) in secrets {
            self.secrets.entry(name).or_insert(entry);
        }
        nearer(&mut self.dialect, dialect);
        nearer(&mut self.store, store);
    }

    /// Visits every place in the file.
    pub(super) fn each_spot(&mut self, visit: &mut dyn FnMut(&mut Spot)) {
        self.permissions.each_spot(visit);
        self.confinement.each_spot(visit);
        self.shell.each_spot(visit);
        self.mcp.each_spot(visit);
        self.gateway.each_spot(visit);
        self.web.each_spot(visit);
        self.browser.each_spot(visit);
        self.media.each_spot(visit);
        self.memory.each_spot(visit);
        self.models.each_spot(visit);
        self.agent.each_spot(visit);
        self.security.each_spot(visit);
        each_entry(&mut self.secrets, visit, |said, visit| {
            said.command.iter_mut().for_each(|words| each_in(words, visit));
            each_in(&mut said.hosts, visit);
        });
        let Self {
            profile,
            profiles,
            deny,
            agents,
            providers,
            hooks,
            floor,
            approval,
            rules,
            commands,
            files,
            store,
            ..
        } = self;
        for text in [profile, store].into_iter().flatten() {
            visit(&mut text.spot);
        }
        each_entry(profiles, visit, Rules::each_spot);
        each_entry(agents, visit, Narrowing::each_spot);
        each_entry(providers, visit, Narrowing::each_spot);
        each_entry(&mut approval.presets, visit, Preset::each_spot);
        each_entry(commands, visit, |_, _| {});
        for rule in rules {
            rule.each_spot(visit);
        }
        for rule in floor {
            rule.each_spot(visit);
        }
        approval.grant_uses.iter_mut().for_each(|uses| visit(&mut uses.spot));
        let Approval { auto_approve, remove, deny: refused, .. } = approval;
        let Hooks { confirm, log, silent, before, after } = hooks;
        before.iter_mut().chain(after).for_each(|hook| hook.each_spot(visit));
        let Files { read, write } = files;
        for list in [deny, remove, refused, confirm, log, silent, read, write].into_iter().chain(auto_approve) {
            each_in(list, visit);
        }
    }
}

/// Two rules for one name both hold, and cannot be written as one; the project's is kept beside the user's.
fn add_narrowings(entries: &mut BTreeMap<Text, Narrowing>, more: BTreeMap<Text, Narrowing>) {
    for (name, rules) in more {
        let taken = entries.get(&name).is_some_and(|known| *known != rules);
        let key = if taken { Text::new(format!("{} (project)", name.value), name.spot) } else { name };
        entries.insert(key, rules);
    }
}

impl Hooks {
    fn add(&mut self, layer: Self) {
        join(&mut self.confirm, layer.confirm);
        join(&mut self.log, layer.log);
        join(&mut self.silent, layer.silent);
        join(&mut self.before, layer.before);
        join(&mut self.after, layer.after);
    }
}

impl Approval {
    fn add(&mut self, layer: Self) {
        let Self { auto_approve, remove, deny, presets, level, grant_uses } = layer;
        if let Some(items) = auto_approve {
            join(self.auto_approve.get_or_insert_default(), items);
        }
        join(&mut self.remove, remove);
        join(&mut self.deny, deny);
        for (name, preset) in presets {
            let known = self.presets.entry(name).or_default();
            join(&mut known.approve, preset.approve);
            join(&mut known.deny, preset.deny);
        }
        nearer(&mut self.level, level);
        nearer(&mut self.grant_uses, grant_uses);
    }
}

impl Undo {
    /// What holds when nobody says anything.
    pub(super) const fn built_in() -> Self {
        Self { keep_days: Some(30), max_file_bytes: Some(64 << 20), max_total_bytes: Some(1 << 30) }
    }

    fn add(&mut self, layer: &Self) {
        nearer(&mut self.keep_days, layer.keep_days);
        nearer(&mut self.max_file_bytes, layer.max_file_bytes);
        nearer(&mut self.max_total_bytes, layer.max_total_bytes);
    }
}

type Visit<'v> = &'v mut dyn FnMut(&mut Spot);

fn each_in(list: &mut [Text], visit: Visit<'_>) {
    for text in list {
        visit(&mut text.spot);
    }
}

/// Keys cannot be changed in place, so the map is built anew.
fn each_entry<V>(map: &mut BTreeMap<Text, V>, visit: Visit<'_>, inner: fn(&mut V, Visit<'_>)) {
    let entries = std::mem::take(map).into_iter().map(|(Placed { value, mut spot }, mut entry)| {
        visit(&mut spot);
        inner(&mut entry, visit);
        (Placed { value, spot }, entry)
    });
    *map = entries.collect();
}

impl Rules {
    fn each_spot(&mut self, visit: Visit<'_>) {
        self.allow.iter_mut().for_each(|list| each_in(list, visit));
        each_in(&mut self.deny, visit);
    }
}

impl Narrowing {
    fn each_spot(&mut self, visit: Visit<'_>) {
        self.profile.iter_mut().for_each(|text| visit(&mut text.spot));
        self.allow.iter_mut().for_each(|list| each_in(list, visit));
        each_in(&mut self.deny, visit);
    }
}

impl Preset {
    fn each_spot(&mut self, visit: Visit<'_>) {
        each_in(&mut self.approve, visit);
        each_in(&mut self.deny, visit);
    }
}

impl FloorRule {
    fn each_spot(&mut self, visit: Visit<'_>) {
        visit(&mut self.tool.spot);
        self.args.iter_mut().for_each(|text| visit(&mut text.spot));
    }
}
