/**
 * What haft read in a shell command: every simple command with its class, what it is reached through, and why
 * it is not known to only read.
 */
import { callout, chip, codes, h, pairs } from './dom.js';

/* Words for the classes of haft-core/src/shell/judged.rs, and how much they matter. */
const CLASSES = {
  neutral: ['says or tests something', 'quiet'],
  search: ['searches', 'ok'],
  read: ['reads', 'ok'],
  list: ['lists', 'ok'],
  silent: ['changes files', 'warn'],
  write: ['writes', 'warn'],
  general: ['may do anything', 'bad'],
};

export function classChip(name) {
  const [does, tone] = CLASSES[name] ?? ['', 'quiet'];
  const node = chip(name, tone);
  node.title = does;
  return node;
}

/**
 * @param {object} shell as the gateway gives it: class, commands, doubts …
 * @returns {HTMLElement}
 */
export function commandTree(shell) {
  const { catastrophe, error } = shell;
  const warnings = [
    catastrophe && callout('bad', h('strong', 'It must never run: '), catastrophe),
    error && callout('warn', h('strong', 'It cannot be parsed: '), `line ${error.line}, column ${error.column}: ${error.why}`),
    shell.interactive && callout('warn', h('code', shell.interactive), ' wants a person at a terminal'),
  ];
  return h('div.command', { test: 'command-tree' }, warnings, outline(shell.commands ?? []), facts(shell));
}

/** Commands come in the order in which they run; what is reached through a wrapper or a substitution goes below it. */
function outline(commands) {
  const root = h('ul.tree');
  const levels = [root];
  for (const command of commands) {
    const depth = Math.min(command.through?.length ?? 0, levels.length - 1);
    const below = h('ul');
    const missing = (command.through ?? []).slice(depth);
    levels[depth].append(h('li', commandLine(command, missing), below));
    levels.length = depth + 1;
    levels.push(below);
  }
  return root;
}

/** @param {string[]} missing what it is reached through that is no command of its own in the list */
function commandLine(command, missing) {
  const [at, of] = command.pipeline ?? [];
  const words = [
    (command.assignments ?? []).map(([name, value]) => [word(`${name}=${value}`), ' ']),
    h('b.word', command.name ?? '(not known before it runs)'),
    (command.args ?? []).map((text) => [' ', word(text)]),
    (command.redirects ?? []).map(({ fd, flow, target }) => [' ', word(`${fd ?? ''}${SIGNS[flow] ?? flow}${target ?? ''}`)]),
  ];
  const marks = [
    missing.length ? h('span.quiet', `through ${missing.join(', ')}`) : null,
    at ? h('span.quiet', `pipe ${at}/${of}`) : null,
    command.background ? h('span.quiet', 'in the background') : null,
    command.wrapper ? h('span.quiet', 'runs what is below') : null,
  ];
  const doubts = (command.doubts ?? []).map((doubt) => h('li', doubt.why));
  return [
    h('div.command-line', classChip(command.class), h('code', words), marks),
    doubts.length ? h('ul.doubts', doubts) : null,
  ];
}

/** A word; with an edge around it where one could not tell where it ends. */
const word = (text) => h(`span.word${/^\S+$/.test(text) ? '' : '.edged'}`, text);

const SIGNS = { reads: '<', writes: '>', both: '<>', joins: '>&', gives: '<<' };
/** A rule of the configuration that is about one of the commands, and whether it holds. */
function foundRule({ rule, command, holds, why }) {
  return h('li', h('code', rule), holds ? ' holds for ' : ' does not cover ', h('code', command), why ? `: ${why}` : null);
}

function facts(shell) {
  // A doubt of one command stands there; here are those about the whole line.
  const told = new Set((shell.commands ?? []).flatMap((command) => (command.doubts ?? []).map((doubt) => doubt.why)));
  const doubts = [...(shell.doubts ?? []).map((doubt) => doubt.why).filter((why) => !told.has(why)), ...(shell.unsettled ?? [])];
  const rows = [
    doubts.length && ['Doubts', h('ul.plain', doubts.map((why) => h('li', why)))],
    shell.reads?.length && ['Reads', codes(shell.reads)],
    shell.writes?.length && ['Writes', codes(shell.writes)],
    shell.repositories?.length && ['Asks git in', codes(shell.repositories)],
    shell.follows && ['Links', 'follows links out of what it names'],
    shell.rules?.length && ['Rules', h('ul.plain', shell.rules.map(foundRule))],
  ].filter(Boolean);
  return rows.length ? pairs(rows) : null;
}
