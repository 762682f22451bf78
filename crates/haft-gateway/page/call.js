/**
 * One call: why it was allowed, what it printed and changed, its records, and the buttons that cancel it or
 * take it back.
 */
import { at } from './api.js';
import { block, button, chip, errorBox, fill, h, loading, part } from './dom.js';
import { cancelCall, outcomeView, undoPart, whyPart } from './outcome.js';
import { argumentsView } from './question.js';
import { bare, clock, editableJson } from './text.js';

const STATES = {
  running: 'info', waiting: 'warn', done: 'ok', failed: 'bad', refused: 'bad', interrupted: 'bad', undone: 'quiet',
};

export const stateChip = (state) => chip(state, STATES[state] ?? 'quiet');

export class CallPane {
  #app;
  #changed;
  #turn = 0;

  /**
   * @param {import('./main.js').App} app
   * @param {() => void} changed called when something was done about the call
   */
  constructor(id, app, changed) {
    this.id = id;
    this.#app = app;
    this.#changed = changed;
    this.root = h('article.call', { test: 'call' }, loading('Loading the call…'));
  }

  async load() {
    const turn = ++this.#turn;
    const { api } = this.#app;
    try {
      const call = await api.get(`v1/calls/${at(this.id)}`);
      // Without changes there is nothing to say; that they cannot be had is said where they would stand.
      const changes = call.undo?.files?.length ? await api.get(`v1/calls/${at(this.id)}/changes`).catch((error) => ({ error })) : {};
      if (turn === this.#turn) this.#draw(call, changes);
    } catch (error) {
      if (turn === this.#turn) fill(this.root, errorBox(error), button('Load again', { run: () => this.load() }));
    }
  }

  #draw(call, changes) {
    const done = () => { this.#changed(); this.load(); };
    fill(
      this.root,
      this.#head(call),
      this.#result(call),
      undoPart(call.undo, { app: this.#app, id: this.id, changes, done }),
      call.args ? part('Arguments', {}, h('p.quiet', 'As recorded: bodies and secrets as hash and size.'), argumentsView(call.args)) : null,
      recordsPart(call.records ?? []),
    );
  }

  #head(call) {
    const who = [['session', call.session], ['through', call.origin]].filter(([, value]) => value);
    const actions = [
      call.state === 'running' ? button('Cancel', { kind: 'danger', test: 'cancel', run: () => this.#cancel() }) : null,
      call.state === 'waiting' ? button('Decide', { run: () => this.#app.go('inbox', this.id) }) : null,
    ];
    return h(
      'header.headline',
      h('div.marks', stateChip(call.state), h('b', call.tool), h('time', clock(call.started_ms)),
        who.map(([name, value]) => h('span', `${name} `, h('b', value)))),
      h('h2', { tabindex: -1 }, bare(call.preview, call.tool)),
      h('p.marks', h('code.quiet', call.call_id), actions),
    );
  }

  async #cancel() {
    await cancelCall(this.#app, this.id);
    this.load();
  }

  /** The outcome while the process still has it, else what the log says. */
  #result({ outcome, error, verdict, state }) {
    // What waits has not failed, whatever its caller was told meanwhile.
    if (state === 'waiting') return whyPart(verdict ?? outcome?.verdict);
    if (outcome) return outcomeView(outcome);
    return [
      error ? errorBox(error) : null,
      whyPart(verdict),
      state === 'done' ? h('p.quiet', 'The output is not kept: the log holds its hash and size only.') : null,
    ];
  }
}

function recordsPart(records) {
  if (!records.length) return null;
  const head = ({ seq, hash, body }) => h('p.marks', chip(body.kind), `record ${seq}`, h('code', hash.slice(0, 16)));
  const list = h('ul.plain', records.map((record) => h('li', head(record), block(editableJson(record.body)))));
  return h('details.part', h('summary', h('h3', 'Records'), h('span.quiet', `${records.length} in the log`)), list);
}
