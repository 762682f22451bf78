/**
 * Work that lasts: the latest runs, the tasks with their next time, who works, and what is remembered. One run is
 * shown with the picture of its graph.
 */
import { blank, button, chip, errorBox, fill, h, loading, part } from './dom.js';
import { searchField } from './list.js';
import { RunPane, stateChip } from './run.js';
import { ago, clock, duration, oneLine, plural } from './text.js';
import { tableView } from './value.js';

const SOON_MS = 500;
const AGAIN_MS = 5000;

export class Work {
  #app;
  #runs = h('div', loading('Loading…'));
  #tasks = h('div');
  #workers = h('div');
  #found = h('div.found', { 'aria-live': 'polite' });
  #all;
  #one = h('div.scroll');
  #run = null;
  #entered = false;
  #soon = null;

  constructor(app) {
    this.#app = app;
    this.search = searchField('Search memory', () => { if (!this.search.value) fill(this.#found); });
    this.search.dataset.test = 'memory-field';
    const ask = button('Search', { test: 'memory-search', run: () => this.#find() });
    const form = h('form.buttons', { on: { submit: (event) => { event.preventDefault(); this.#find(); } } }, this.search, ask);
    this.#all = h('div.scroll', this.#runs, this.#tasks, this.#workers, part('Memory', {}, form, this.#found));
    this.root = h('section.work', this.#all, this.#one);
    this.keys = { j: () => this.#move(1), k: () => this.#move(-1) };
    // Other processes work, too, and tell nobody here.
    setInterval(() => { if (!this.root.hidden && !this.#run) this.refresh(); }, AGAIN_MS);
  }

  /** @param {string | null} id the run to be shown */
  route(id) {
    this.#entered = true;
    if (this.#run?.id !== id) this.#run?.leave();
    if (id && this.#run?.id !== id) {
      this.#run = new RunPane(id, this.#app);
      const back = button('All work', { kind: 'quiet', key: 'Esc', test: 'work-back', run: () => this.#app.go('work') });
      fill(this.#one, h('div.all-work', back), this.#run.root);
    } else if (id) this.#run.load();
    if (!id) this.#run = null;
    this.#all.hidden = Boolean(id);
    this.#one.hidden = !id;
    if (!id) this.refresh();
  }

  async refresh() {
    if (!this.#entered) return;
    this.#run?.load();
    const { api } = this.#app;
    try {
      const [{ runs }, { tasks }, { workers }] = await Promise.all(['runs', 'tasks', 'workers'].map((name) => api.get(`v1/${name}`)));
      redraw(this.#runs, runs, () => this.#runsPart(runs));
      redraw(this.#tasks, tasks, () => this.#tasksPart(tasks));
      redraw(this.#workers, workers, () => workersPart(workers));
    } catch (error) {
      if (!this.#runs.dataset.stamp) fill(this.#runs, errorBox(error));
    }
  }

  event(name, data) {
    if (name !== 'step' || this.root.hidden) return;
    if (this.#run && data.run === this.#run.id) this.#run.stepped(data);
    // Once for all that happen in a moment.
    else if (!this.#run) this.#soon ??= setTimeout(() => { this.#soon = null; this.refresh(); }, SOON_MS);
  }

  escape() {
    if (this.#run) this.#app.go('work');
  }

  #open(id, label) {
    return button(oneLine(label), { kind: 'quiet', test: 'run-open', run: () => this.#app.go('work', id) });
  }

  #runsPart(runs) {
    const row = (run) => [
      this.#open(run.id, run.name || run.id), stateChip(run.stands), progress(run), clock(run.begun_ms),
      run.ended_ms ? duration(run.ended_ms - run.begun_ms) : '', h('span.step-said', run.why ?? ''),
    ];
    const none = blank('Nothing was run yet', 'Runs of pipelines appear here, whoever works on them.');
    return part('Runs', { test: 'work-runs' }, runs.length ? tableView(['run', 'state', 'steps', 'began', 'took', 'why'], runs.map(row)) : none);
  }

  #tasksPart(tasks) {
    const row = (task) => [
      task.title, chip(task.status, task.status === 'failed' ? 'bad' : 'quiet'), task.kind, next(task),
      task.ran_ms ? [ago(task.ran_ms), task.ok === false ? chip('failed', 'bad') : ''] : '', task.run ? this.#open(task.run, 'its run') : '',
    ];
    const none = h('p.quiet', 'Nothing is promised.');
    return part('Tasks', { test: 'work-tasks' }, tasks.length ? tableView(['task', 'status', 'kind', 'next', 'last', ''], tasks.map(row)) : none);
  }

  async #find() {
    const q = this.search.value.trim();
    if (!q) return;
    fill(this.#found, loading('Searching…'));
    try {
      const { results, warnings } = await this.#app.api.get('v1/memory/search', { q });
      fill(this.#found, warnings.map((text) => h('p.hint', text)), results.length ? results.map(foundView) : h('p.quiet', 'Nothing was found.'));
    } catch (error) {
      fill(this.#found, errorBox(error));
    }
  }

  #move(step) {
    const rows = [...this.#runs.querySelectorAll('[data-test=run-open]')];
    const from = rows.indexOf(document.activeElement);
    rows[from < 0 ? 0 : Math.min(rows.length - 1, Math.max(0, from + step))]?.focus();
  }
}

/** Draws only what is something else now, so that what has the focus keeps it. */
function redraw(node, value, draw) {
  const stamp = JSON.stringify(value);
  if (node.dataset.stamp === stamp) return;
  node.dataset.stamp = stamp;
  fill(node, draw());
}

function progress({ count, unsettled, state }) {
  const share = h(`span.fill.${state === 'done' ? 'done' : state}`);
  share.style.width = `${count ? ((count - unsettled) / count) * 100 : 0}%`;
  return h('span.progress', h('span.duration', { 'aria-hidden': 'true' }, share), h('span.quiet', `${count - unsettled} of ${count}`));
}

function next({ next_ms: at, waits_for: waits, due_ms: due }) {
  if (waits) return chip('waits for an answer', 'warn');
  if (at) return clock(at);
  return due ? `due ${clock(due)}` : h('span.quiet', 'not by itself');
}

function workersPart(workers) {
  const row = (worker) => [
    h('code', worker.id), chip(worker.state, worker.state === 'working' ? 'ok' : 'quiet'), worker.host, worker.labels.join(', '),
    `${worker.busy} of ${worker.slots}`, ago(worker.seen_ms),
  ];
  const none = h('p.quiet', 'Nobody works on this project.');
  const title = workers.length ? `Workers (${plural(workers.length, 'worker')})` : 'Workers';
  return part(title, { test: 'work-workers' }, workers.length ? tableView(['worker', 'state', 'host', 'labels', 'busy', 'seen'], workers.map(row)) : none);
}

function foundView({ namespace, line, content, before, after, source, score, at_ms: when }) {
  return h(
    'div.memory-hit',
    { test: 'memory-hit' },
    h('p.marks', h('b', `${namespace}:${line}`), chip(source), h('span', score.toFixed(2)), when ? h('time', ago(when)) : null),
    h('pre.block', before ? h('span.quiet', `${before}\n`) : null, h('b', content), after ? h('span.quiet', `\n${after}`) : null),
  );
}
