/**
 * One question, drawn: what would happen, with what, where, held by what, and because of what. Nothing here can
 * be pressed; decide.js has the answers.
 */
import { classChip, commandTree } from './command.js';
import { diffView, foldedView } from './diff.js';
import { block, callout, chip, codes, copyButton, h, pairs, part } from './dom.js';
import { ago, bare, clock, editableJson } from './text.js';

const SEVERITIES = { low: 'quiet', medium: 'info', high: 'warn', critical: 'bad' };

const severityChip = (severity) => chip(severity, SEVERITIES[severity] ?? 'quiet');

/**
 * Title and circumstances.
 * @param {object} approval
 * @param {object | null} question
 */
export function questionHead(approval, question) {
  const who = [
    ['agent', approval.caller],
    ['session', approval.session],
    ['through', approval.origin],
  ].filter(([, value]) => value).map(([name, value]) => h('span', `${name} `, h('b', value)));
  const chips = question ? [severityChip(question.severity), question.class ? classChip(question.class) : null] : null;
  const { reason, by } = question?.verdict ?? approval;
  return h(
    'header.headline',
    h('div.marks', chips, h('b', approval.tool), h('time', { title: clock(approval.asked_ms) }, ago(approval.asked_ms)), who),
    h('h2', { tabindex: -1 }, bare(question?.preview ?? approval.preview, approval.tool)),
    h('p.reason', h('span.quiet', 'Asked because '), reason, by ? h('span.quiet', ` (by ${by})`) : null),
  );
}

/**
 * Everything there is to know before answering.
 * @param {object} question
 * @param {HTMLElement | null} editor stands in for the arguments while they are edited
 * @param {string[]} changed what is new since it was last shown
 * @param {(path: string) => Promise<{diff: string}>} open gives what it would change at or below a path
 */
export function questionParts(question, editor, changed, open) {
  const sources = question.sources ?? [];
  return [
    question.problem ? callout('warn', h('strong', 'It would fail: '), question.problem) : null,
    sources.length ? sourcesPart(sources) : null,
    question.shell ? commandPart(question) : null,
    effects(question, open),
    question.trial && question.tried == null ? trialPart(question.trial) : null,
    editor ?? argumentsPart(question, changed.includes('the arguments')),
    question.hold ? holdPart(question.hold) : null,
    question.executed ? executedPart(question.executed) : null,
    question.places?.length ? part('Places', {}, codes(question.places)) : null,
    sources.length ? null : sourcesPart(sources),
    rulesPart(question),
  ];
}

function commandPart({ shell, args, preview }) {
  const aside = h('span.aside', h('span.quiet', 'as a whole '), classChip(shell.class));
  // A preview is cut, and shows no line breaks; what is decided about is the whole text.
  const cut = typeof args.command === 'string' && !preview.endsWith(`$ ${args.command}`);
  return part('Command', { aside }, cut ? block(args.command, 'The whole command') : null, commandTree(shell));
}

/** What it would change, or did when it was tried. */
export function effects({ diff, ranked, tried = null }, open) {
  if (diff == null && tried == null) return null;
  const title = tried == null ? 'What it would change' : 'What it changed when it was tried';
  const note = tried == null ? null : h('p.quiet', 'Not in the project yet. A yes keeps exactly this, without running it again.');
  return part(
    title,
    {},
    note,
    diff ? diffView(diff) : h('p.quiet', 'No file changes.'),
    foldedView(ranked, open),
    tried == null ? null : [h('h4', 'What it printed'), tried ? block(tried, 'Output of the trial') : h('p.quiet', 'Nothing.')],
  );
}

function argumentsPart({ args, diff, shell }, changed) {
  const names = Object.keys(args ?? {});
  // The diff or the command tree says the same in better words; the raw form is one click away.
  const open = changed || (!diff && !shell);
  const summary = h('summary', h('h3', 'Arguments'), h('span.quiet', names.join(', ') || 'none'));
  return h('details.part', { open }, summary, argumentsView(args ?? {}));
}

/** @param {Record<string, unknown>} args */
export function argumentsView(args) {
  const shown = (value) => (typeof value === 'string' ? block(value) : block(editableJson(value)));
  return pairs(Object.entries(args).map(([name, value]) => [h('code', name), shown(value)]));
}

/** How the kernel holds the program: what it may do, and what enforces that. */
export function holdPart(hold) {
  const rows = Object.entries(hold.permissions ?? {}).map(([name, how]) => {
    const [word] = how.split(' ');
    const tone = { enforced: 'ok', partial: 'warn' }[word] ?? 'bad';
    return [name, [chip(word, tone), h('span.quiet', how.slice(word.length))]];
  });
  rows.unshift(['reaches the network', hold.network ? chip('yes', 'warn') : chip('no', 'ok')]);
  const aside = h('span.aside', h('span.quiet', 'confinement '), chip(hold.level, hold.enforced ? 'ok' : 'bad'));
  return part(
    'Permissions',
    { test: 'permissions', aside },
    hold.gap ? callout('warn', h('strong', 'It could not be taken back: '), hold.gap) : null,
    pairs(rows),
  );
}

/** What came of trying it when it was stored. A yes runs it anew. */
function trialPart({ printed, diff, gap = null, problem = null }) {
  return part(
    'What it did when it was tried',
    { test: 'trial' },
    h('p.quiet', 'Trial run from when this question was stored; nothing was kept. Approving runs the command again.'),
    problem ? callout('warn', problem) : null,
    gap ? callout('warn', h('strong', 'It could not be taken back: '), gap) : null,
    diff ? diffView(diff) : h('p.quiet', 'No file changes.'),
    printed ? [h('h4', 'What it printed'), block(printed, 'Output of the stored trial')] : h('p.quiet', 'It printed nothing.'),
  );
}

/** The files that it runs: a yes is for these bytes. */
function executedPart({ files = [], unbound = [], beyond = null }) {
  const there = files.filter(({ note }) => note !== 'absent');
  const rows = there.map(({ path, sha256, note }) => [h('code', path), h('code', sha256 ? `sha256 ${sha256}` : note)]);
  return part(
    'What it runs',
    { test: 'executed' },
    rows.length ? [h('p.quiet', 'A yes is for these files as they are now.'), pairs(rows)] : null,
    beyond ? callout('warn', beyond) : null,
    unbound.length ? [h('p.quiet', 'A yes is not bound to:'), codes(unbound)] : null,
  );
}

function sourcesPart(sources) {
  const list = h('ul.plain', sources.map((source) => {
    const [label, ...rest] = source.split(': ');
    return h('li', rest.length ? [chip(label, 'warn'), ' ', rest.join(': ')] : source);
  }));
  const none = h('p.quiet', 'Nothing from outside the project is known to have reached this conversation.');
  const note = h('p', 'This conversation has heard from these; what they said may have put the idea there.');
  return part('Where the data came from', { test: 'sources' }, sources.length ? [note, list] : none);
}

function rulesPart({ rules = [], subject }) {
  const list = rules.map((rule) => h('li', h('code', rule), copyButton(rule)));
  const some = [h('p.quiet', 'In your configuration this would let it run unasked:'), h('ul.plain.rules', list)];
  const none = h('p.quiet', 'No general rule is safe to suggest. “Always for this pattern” remembers ', h('code', subject ?? ''), ' only.');
  return part('The rule that would make it automatic', { test: 'rules' }, rules.length ? some : none);
}

const COMPARED = [
  ['args', 'the arguments'], ['diff', 'what it would change'], ['places', 'where it happens'], ['preview', 'the summary'],
  ['severity', 'the severity'], ['hold', 'the permissions'], ['shell', 'the reading of the command'], ['executed', 'the files that it runs'], ['verdict', 'the reason'],
  ['problem', 'whether it would fail'], ['tried', 'the trial'], ['sources', 'where the data came from'], ['subject', 'the subject'],
];

/**
 * What differs between two forms of a question, in words.
 * @returns {string[]}
 */
export function differences(before, after) {
  const same = (name) => JSON.stringify(before[name] ?? null) === JSON.stringify(after[name] ?? null);
  return COMPARED.filter(([name]) => !same(name)).map(([, words]) => words);
}
