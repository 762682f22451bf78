/**
 * Unified diffs as something to look at. Lines are counted as the hunk headers say, so that a removed line
 * that looks like the header of a file cannot pass for one. Long lines wrap: nothing hides to the right.
 */
import { button, errorBox, h } from './dom.js';
import { plural } from './text.js';

/* More lines than this are folded away, with a button that says how many. */
const SHOWN_MAX = 800;

/** @typedef {{kind: 'add'|'del'|'same'|'hunk'|'meta', text: string, number?: number}} Line */
/** @typedef {{path: string, added: number, removed: number, lines: Line[]}} FileDiff */

const HUNK = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/;
const KINDS = { '+': 'add', '-': 'del', ' ': 'same' };

/**
 * @returns {FileDiff[]}
 */
export function parseDiff(text) {
  const lines = text.replace(/\n$/, '').split('\n');
  /** @type {FileDiff[]} */
  const files = [];
  let names = [];
  let at = 0;
  const file = () => files.at(-1) ?? files[files.push(newFile('')) - 1];
  while (at < lines.length) {
    const line = lines[at];
    const hunk = HUNK.exec(line);
    if (hunk) {
      at = takeHunk(file(), lines, at, hunk);
      continue;
    }
    if (line.startsWith('--- ')) names = [line.slice(4)];
    else if (line.startsWith('+++ ') && names.length) {
      files.push(newFile(fileName(names[0], line.slice(4))));
      names = [];
    } else if (!line.startsWith('diff --git ') && line !== '') file().lines.push({ kind: 'meta', text: line });
    at += 1;
  }
  return files;
}

const newFile = (path) => ({ path, added: 0, removed: 0, lines: [] });

function fileName(before, after) {
  const bare = (name) => name.replace(/\t.*$/, '').replace(/^[ab]\//, '');
  if (before.startsWith('/dev/null')) return `${bare(after)} (new)`;
  if (after.startsWith('/dev/null')) return `${bare(before)} (removed)`;
  return bare(before) === bare(after) ? bare(after) : `${bare(before)} → ${bare(after)}`;
}

/** Takes exactly the lines that the hunk announces. Returns where the next thing starts. */
function takeHunk(file, lines, start, [header, oldFrom, oldCount = '1', newFrom, newCount = '1']) {
  const left = { old: Number(oldCount), new: Number(newCount) };
  const number = { old: Number(oldFrom), new: Number(newFrom) };
  file.lines.push({ kind: 'hunk', text: header + lines[start].slice(header.length) });
  let at = start + 1;
  while (at < lines.length && (left.old > 0 || left.new > 0 || lines[at].startsWith('\\'))) {
    const kind = lines[at].startsWith('\\') ? 'meta' : KINDS[lines[at][0]] ?? 'same';
    const side = kind === 'del' ? 'old' : 'new';
    file.lines.push({ kind, text: lines[at], number: kind === 'meta' ? undefined : number[side] });
    if (kind === 'add' || kind === 'same') { left.new -= 1; number.new += 1; }
    if (kind === 'del' || kind === 'same') { left.old -= 1; number.old += 1; }
    if (kind === 'add') file.added += 1;
    if (kind === 'del') file.removed += 1;
    at += 1;
  }
  return at;
}

/**
 * @returns {HTMLElement}
 */
export function diffView(text) {
  const files = parseDiff(text);
  let room = SHOWN_MAX;
  const views = files.map((file) => {
    const view = fileView(file, room);
    room = Math.max(0, room - file.lines.length);
    return view;
  });
  return h('div.diff', { test: 'diff' }, views);
}

/**
 * The directories of a change whose files are not named one by one, each with a button that opens it.
 * @param {{folded: {path: string, files: number}[]} | null | undefined} ranked
 * @param {((path: string) => Promise<{diff: string}>) | undefined} open gives what changed at or below a path
 */
export function foldedView(ranked, open) {
  const folded = ranked?.folded ?? [];
  return folded.length && open ? h('div.folded', { test: 'folded' }, folded.map((tree) => foldedRow(tree, open))) : null;
}

function foldedRow({ path, files }, open) {
  const inside = h('div');
  const show = button(`Open ${path}/ (${plural(files, 'file')})`, { kind: 'quiet', run: async () => {
    show.disabled = true;
    try {
      const { diff } = await open(path);
      show.remove();
      inside.replaceChildren(diffView(diff));
    } catch (error) {
      show.disabled = false;
      inside.replaceChildren(errorBox(error));
    }
  } });
  return h('div', show, inside);
}

/** Whether a part of a diff in here has not been unfolded. */
export const hasFolds = (node) => node.querySelector('.fold') !== null;

function fileView(file, room) {
  const counts = h('span.counts', h('span.added', `+${file.added}`), ' ', h('span.removed', `−${file.removed}`));
  const label = { role: 'group', 'aria-label': `Changes of ${file.path}` };
  const body = h('div.lines', label, file.lines.slice(0, room).map(lineView));
  const rest = file.lines.slice(room);
  if (rest.length) {
    const unfold = button(`Show ${plural(rest.length, 'more line')}`, { kind: 'quiet', run: () => {
      unfold.remove();
      body.append(...rest.map(lineView));
    } });
    unfold.classList.add('fold');
    body.append(unfold);
  }
  return h('section.file', h('header', h('code', file.path), counts), body);
}

function lineView({ kind, text, number }) {
  return h(`div.line.${kind}`, { data: { n: number ?? '' } }, text || ' ');
}
