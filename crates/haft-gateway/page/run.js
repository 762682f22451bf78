/**
 * One run: its graph, its steps, and what a person can do about it.
 */
import { at } from './api.js';
import { button, callout, chip, errorBox, fill, h, loading, part } from './dom.js';
import { Graph, TONES } from './graph.js';
import { clock, duration, oneLine, plural } from './text.js';
import { tableView, valueView } from './value.js';

/* Events of this process make it move at once; what others do is asked for. */
const AGAIN_MS = 3000;
const SOON_MS = 250;
const ROWS_MAX = 300;
const STIRRING = ['running', 'nested', 'asking', 'uncertain', 'failed'];

export const stateChip = (state) => chip(state, TONES[state] ?? 'quiet');

export class RunPane {
  #app;
  #graph = null;
  #drawing = h('div.drawing', { tabindex: 0, role: 'group', 'aria-label': 'Graph' });
  #head = h('header.headline');
  #asks = h('div.asks', { 'aria-live': 'polite' });
  #steps = h('div');
  #given = h('div');
  #loading = false;
  #later = null;
  #over = false;

  /** @param {import('./main.js').App} app */
  constructor(id, app) {
    this.id = id;
    this.#app = app;
    this.root = h('article.run', { test: 'run' }, loading('Loading the run…'));
    this.load();
  }

  async load() {
    // One at a time: of a large run, the answer may take longer than it takes for something to happen.
    if (this.#loading) return this.#again(SOON_MS);
    this.#loading = true;
    try {
      this.#draw(await this.#app.api.get(`v1/runs/${at(this.id)}`));
    } catch (error) {
      // What is drawn stays; that there is no connection is said at the top.
      if (!this.#graph) fill(this.root, errorBox(error), button('Load again', { run: () => this.load() }));
    } finally {
      this.#loading = false;
    }
  }

  /** Something happened to a step. */
  stepped({ step, state }) {
    this.#graph?.set(step, state);
    this.#again(SOON_MS);
  }

  /** Asks again, once for many reasons; the sooner one counts. */
  #again(ms) {
    if (this.#later && this.#later.ms <= ms) return;
    clearTimeout(this.#later?.timer);
    const timer = setTimeout(() => { this.#later = null; if (!this.#left) this.load(); }, ms);
    this.#later = { ms, timer };
  }

  /** Nobody looks at it any more. */
  leave() {
    clearTimeout(this.#later?.timer);
    this.#later = { ms: 0 };
  }

  get #left() {
    return !this.root.isConnected || this.root.closest('[hidden]') !== null;
  }

  #draw({ run, plan, inputs, steps, needs }) {
    if (!this.#graph) {
      this.#graph = new Graph(steps, needs);
      this.#drawing.replaceChildren(this.#graph.root);
      if (Object.keys(inputs ?? {}).length) fill(this.#given, part('Given', {}, valueView(inputs)));
      fill(this.root, this.#head, this.#asks, this.#drawing, this.#steps, this.#given);
    }
    this.#graph.update(steps);
    this.#over = run.state !== 'running';
    this.#drawHead(run);
    this.#drawAsks(steps);
    this.#drawSteps(plan, steps);
    if (!this.#over) this.#again(AGAIN_MS);
  }

  #drawHead(run) {
    const over = run.count - run.unsettled;
    const cancel = this.#over ? null : button('Cancel the run', { kind: 'danger', test: 'run-cancel', run: () => this.#cancel() });
    const above = run.above ? button('The run around it', { kind: 'quiet', run: () => this.#app.go('work', run.above) }) : null;
    fill(
      this.#head,
      h('div.marks', { test: 'run-state' }, stateChip(run.stands), h('span', `${over} of ${plural(run.count, 'step')} over`),
        h('time', clock(run.begun_ms)), h('span', duration((run.ended_ms ?? Date.now()) - run.begun_ms)), run.why ? h('span', run.why) : null),
      h('h2', { tabindex: -1 }, run.name || run.id),
      h('p.marks', h('code.quiet', run.id), above, cancel),
    );
  }

  /** What nobody but a person can say: drawn anew only if it is something else, so that nothing moves under a finger. */
  #drawAsks(steps) {
    const asking = steps.filter(({ state }) => ['uncertain', 'asking'].includes(state)).slice(0, 20);
    const stamp = JSON.stringify(asking.map(({ id, state, call_id: call }) => [id, state, call]));
    if (this.#asks.dataset.stamp === stamp) return;
    this.#asks.dataset.stamp = stamp;
    fill(this.#asks, asking.map((step) => (step.state === 'asking' ? this.#question(step) : this.#uncertain(step))));
  }

  #question({ id, call_id: call }) {
    const decide = button('Decide', { test: 'step-decide', run: () => this.#app.go('inbox', call) });
    return callout('info', h('strong', id), ' waits for an answer.', decide);
  }

  #uncertain({ id, said }) {
    const says = (label, how) => button(label, { test: `settle-${how}`, run: () => this.#settle(id, how) });
    return h(
      'div.callout.warn',
      { role: 'status', data: { test: 'uncertain', step: id } },
      h('p', h('strong', id), ' is uncertain: it was begun, and nobody knows what came of it. It is not done again by itself.'),
      said ? h('p.hint', oneLine(said)) : null,
      h('div.buttons', says('It happened', 'done'), says('It did not happen', 'failed'), says('Do it again', 'again')),
    );
  }

  #drawSteps(plan, steps) {
    const shown = steps.length > ROWS_MAX ? steps.filter(({ state }) => STIRRING.includes(state)).slice(0, ROWS_MAX) : steps;
    const title = shown.length < steps.length ? `Steps (${shown.length} of ${steps.length.toLocaleString()} that move or failed)` : 'Steps';
    const rows = shown.map((step) => [
      h('code', step.id), stateChip(step.state), does(plan.steps?.[step.nr]), step.attempt > 1 ? step.attempt : '',
      step.begun_ms ? duration((step.ended_ms ?? Date.now()) - step.begun_ms) : '', h('span.step-said', oneLine(step.said ?? '')), this.#more(plan, step),
    ]);
    const stamp = JSON.stringify([plan.steps?.length, shown]);
    if (this.#steps.dataset.stamp === stamp) return;
    this.#steps.dataset.stamp = stamp;
    fill(this.#steps, part(title, { test: 'run-steps' }, rows.length ? tableView(['step', 'state', 'does', 'attempt', 'took', 'says', ''], rows) : h('p.quiet', 'none')));
  }

  #more(plan, step) {
    const inner = plan.steps?.[step.nr]?.pipeline && !['waiting', 'ready', 'held', 'skipped'].includes(step.state);
    if (inner) return button('Open', { kind: 'quiet', run: () => this.#app.go('work', `${this.id}-${step.nr}`) });
    const called = step.call_id && ['done', 'failed', 'running', 'uncertain'].includes(step.state);
    return called ? button('Call', { kind: 'quiet', title: 'Show its call', run: () => this.#app.go('activity', step.call_id) }) : null;
  }

  async #settle(step, how) {
    try {
      await this.#app.api.post(`v1/runs/${at(this.id)}/settle`, { step, how });
      this.#app.notices.say('Settled', { text: `${step}: ${{ done: 'it happened', failed: 'it did not happen', again: 'it is done again' }[how]}` });
    } catch (error) {
      this.#app.notices.fail('Not settled', error);
    }
    this.load();
  }

  async #cancel() {
    try {
      const { cancelled } = await this.#app.api.post(`v1/runs/${at(this.id)}/cancel`);
      this.#app.notices.say(cancelled ? 'Cancelled' : 'It was over already', { text: cancelled ? 'What runs just now is told to stop.' : '' });
    } catch (error) {
      this.#app.notices.fail('Not cancelled', error);
    }
    this.load();
  }
}

/** What a step does, in a word. */
function does(step = {}) {
  if (step.tool) return h('code', step.tool);
  if (step.pipeline) return ['pipeline ', h('code', step.pipeline)];
  if (step.prompt) return 'an agent';
  if (step.ask) return 'asks a person';
  return step.wait ? `waits ${step.wait}` : '';
}
