/**
 * The activity: every call as it comes, with how long it took and what became of it. The gateway's list is the
 * truth; events only make it move at once.
 */
import { CallPane, stateChip } from './call.js';
import { blank, h } from './dom.js';
import { Browser } from './list.js';
import { bare, clock, duration, oneLine } from './text.js';

const LIMIT = 200;
const KEPT_MAX = 500;
/* Bars are logarithmic: from a millisecond to ten minutes, so that both can be told apart. */
const LONGEST_MS = 600_000;
const STATES = ['running', 'waiting', 'done', 'failed', 'refused', 'interrupted', 'undone'];
const REFUSALS = ['denied', 'rejected', 'invalid_input', 'unknown_tool'];

export class Activity extends Browser {
  /** @type {Map<string, object>} newest first */
  #lines = new Map();
  #call = null;
  #loaded = false;
  #later = null;
  #state;

  constructor(app) {
    const options = ['', ...STATES].map((state) => h('option', { value: state }, state || 'all states'));
    const state = h('select', { 'aria-label': 'State', on: { change: () => this.draw() } }, options);
    super(app, {
      name: 'activity', label: 'Calls, newest first', test: 'activity-row', key: (line) => line.call_id, draw: drawRow,
      search: 'Filter calls', head: state,
      nothing: ['No call is chosen', 'Choose one to see what it did and why it was allowed, and to take it back.'],
    });
    this.#state = state;
    // What runs gets longer.
    setInterval(() => { if (!this.root.hidden && [...this.#lines.values()].some(isRunning)) this.draw(); }, 1000);
  }

  async refresh() {
    try {
      const { calls } = await this.app.api.get('v1/calls', { limit: LIMIT });
      this.#loaded = true;
      this.#lines = new Map(calls.map((line) => [line.call_id, line]));
      this.draw();
    } catch (error) {
      if (!this.#loaded) this.fail(error);
    }
  }

  draw() {
    const { fits } = this;
    const text = (line) => [line.tool, line.preview, line.session, line.origin, line.call_id, line.error?.message].join(' ');
    const lines = [...this.#lines.values()].filter((line) => (!this.#state.value || line.state === this.#state.value) && fits(text(line)));
    const second = Math.floor(Date.now() / 1000);
    const none = this.#lines.size ? blank('No call fits the filter') : blank('No calls yet', 'What agents do appears here as they do it.');
    this.show(lines.map((line) => (isRunning(line) ? { ...line, second } : line)), none);
  }

  pane(id) {
    if (this.#call?.id !== id) this.#call = new CallPane(id, this.app, () => this.refresh());
    this.#call.load();
    return this.#call.root;
  }

  event(name, data) {
    const id = data.call_id ?? data.outcome?.call_id;
    if (name === 'tool_start') this.#change(id, { ...data, state: 'running' });
    else if (name === 'tool_progress') this.#change(id, { progress: data });
    else if (name === 'tool_end') this.#change(id, ended(data));
    else if (name === 'approval') this.#change(id, { preview: data.preview, verdict: data.verdict, started_ms: data.asked_ms, state: 'waiting' });
    else if (name === 'decided') this.#soon();
    else return;
    if (this.chosen === id && name !== 'tool_progress') this.#call.load();
  }

  #change(id, more) {
    const known = this.#lines.get(id);
    const line = { call_id: id, tool: '', started_ms: Date.now(), ...known, ...more };
    if (known) this.#lines.set(id, line);
    else this.#lines = new Map([[id, line], ...[...this.#lines].slice(0, KEPT_MAX)]);
    this.draw();
    // An event about a call that began before this page did not say all.
    if (!line.tool) this.#soon();
  }

  /** Asks again, once for many reasons. */
  #soon() {
    this.#later ??= setTimeout(() => { this.#later = null; this.refresh(); }, 300);
  }
}

const isRunning = (line) => line.state === 'running';

/** What an end says about a call. */
function ended({ outcome, session }) {
  const { tool, success, error, verdict, undo, duration_ms } = outcome;
  const kind = error?.kind;
  const failure = REFUSALS.includes(kind) ? 'refused' : kind === 'approval_required' ? 'waiting' : 'failed';
  return { tool, session, error, verdict, undo, duration_ms, state: success ? 'done' : failure, progress: undefined };
}

function drawRow(line) {
  const ms = line.duration_ms ?? (isRunning(line) ? Math.max(0, Date.now() - line.started_ms) : null);
  const note = isRunning(line) ? line.progress?.message : line.error?.message;
  return [
    h('span.row-top', h('b', line.tool), stateChip(line.state), h('time', clock(line.started_ms))),
    h('span.row-text', oneLine(bare(line.preview, line.tool))),
    note ? h('span.row-note', oneLine(note)) : null,
    h('span.row-foot', bar(line.state, ms), h('span.quiet.ms', duration(ms))),
  ];
}

function bar(state, ms) {
  const part = h(`span.fill.${state}`);
  const share = Math.log10((ms ?? 0) + 1) / Math.log10(LONGEST_MS);
  // Through the style object: the page's policy allows no style in the markup.
  part.style.width = `${Math.min(100, Math.max(1, share * 100))}%`;
  return h('span.duration', { 'aria-hidden': 'true' }, part);
}
