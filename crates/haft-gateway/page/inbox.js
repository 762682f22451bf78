/**
 * The inbox: what waits for a person, oldest first, so that what comes does not move what is there.
 */
import { ApprovalPane } from './approval.js';
import { FormPane, isForm } from './asked.js';
import { blank, chip, fill, h } from './dom.js';
import { Browser } from './list.js';
import { ago, bare, plural } from './text.js';

export class Inbox extends Browser {
  /** @type {object[]} */
  #approvals = [];
  /** @type {Map<string, ApprovalPane>} */
  #panes = new Map();
  #loaded = false;
  #turn = 0;
  #foot;

  constructor(app) {
    const foot = h('p.foot');
    super(app, {
      name: 'inbox', label: 'Pending approvals', test: 'inbox-item', key: (approval) => approval.id, draw: drawRow,
      search: 'Filter approvals', foot,
      nothing: ['Nothing to decide', 'You can leave this open: the title counts what waits.'],
    });
    this.#foot = foot;
    Object.assign(this.keys, {
      a: () => this.#onShown((pane) => pane.approve()),
      r: () => this.#onShown((pane) => pane.reject()),
      t: () => this.#onShown((pane) => pane.attempt()),
      e: () => this.#onShown((pane) => pane.edit()),
    });
    // The rows say how long they wait; and what no event told of is found here.
    setInterval(() => this.refresh(), 10_000);
  }

  get #shown() {
    return this.#panes.get(this.chosen) ?? null;
  }

  /** What is decided need not be come back to. */
  get stays() {
    return this.chosen !== null && !this.#shown?.isDecided;
  }

  async refresh() {
    const turn = ++this.#turn;
    try {
      const { approvals, elsewhere } = await this.app.api.get('v1/approvals', { all: false });
      if (turn !== this.#turn) return;
      this.#loaded = true;
      this.#merge(approvals.filter((approval) => approval.state === 'pending'));
      fill(this.#foot, elsewhere ? `${plural(elsewhere, 'more waits', 'more wait')} in other projects.` : null);
      this.draw();
      this.#chooseFirst();
    } catch (error) {
      if (!this.#loaded) this.fail(error);
    }
  }

  /** Known ones keep their place, those that are new come last; the one on the screen stays until it is left. */
  #merge(pending) {
    const waiting = new Map(pending.map((approval) => [approval.id, approval]));
    const kept = this.#approvals.filter(({ id }) => waiting.has(id) || this.chosen === id || this.#panes.get(id)?.state === 'busy');
    const known = new Set(kept.map(({ id }) => id));
    const fresh = pending.filter(({ id }) => !known.has(id)).sort((one, other) => one.asked_ms - other.asked_ms);
    this.#approvals = [...kept.map((old) => waiting.get(old.id) ?? { ...old, state: this.#panes.get(old.id)?.state }), ...fresh];
    this.app.waiting(waiting.size);
    // Those that another page or a terminal has decided are looked at again, as long as anybody looks.
    for (const [id, pane] of this.#panes) {
      if (!waiting.has(id)) pane.heard();
      if (pane.isDecided && id !== this.chosen) this.#panes.delete(id);
    }
  }

  draw() {
    if (!this.#loaded) return;
    const { fits } = this;
    const found = this.#approvals.filter(({ tool, preview, caller, session }) => fits([tool, preview, caller, session].join(' ')));
    const rows = found.map((approval) => ({ ...approval, waits: ago(approval.asked_ms) }));
    const none = blank('Nothing waits', 'Calls that need a person appear here as they come.');
    this.show(rows, this.#approvals.length ? blank('Nothing fits the filter') : none);
  }

  /** Where there is room for it, something is always open; but nobody has asked for it, so it has to settle. */
  #chooseFirst() {
    const [first] = this.#approvals;
    if (this.chosen || this.narrow || !first) return;
    this.choose(first.id);
    this.#shown.settle();
  }

  route(id) {
    super.route(id);
    if (!id) this.#chooseFirst();
  }

  pane(id) {
    const { api, notices } = this.app;
    const how = {
      api, notices, full: true, links: () => this.app.links, decided: (...told) => this.#decided(...told), next: () => this.#next(),
    };
    const pane = this.#panes.get(id) ?? (isForm(id) ? new FormPane(id, how) : new ApprovalPane(id, how));
    this.#panes.set(id, pane);
    if (!pane.isDecided) pane.load();
    return pane.root;
  }

  /** What is decided goes when the person does. */
  left(id) {
    if (!this.#panes.get(id)?.isDecided) return;
    this.#panes.delete(id);
    this.#approvals = this.#approvals.filter((approval) => approval.id !== id);
    this.draw();
  }

  #decided(pane, title, ok) {
    if (this.#shown !== pane || !this.open) {
      const text = this.#approvals.find(({ id }) => id === pane.id)?.preview;
      const show = { label: 'Show', run: () => this.app.go('activity', pane.id) };
      this.app.notices.say(title, { text, tone: ok ? 'ok' : 'bad', actions: [show] });
    }
    if (this.#shown !== pane) this.#panes.delete(pane.id);
    this.refresh();
  }

  /** On to what waits after this, or before it. */
  #next() {
    const ids = this.#approvals.map(({ id }) => id);
    const at = ids.indexOf(this.chosen);
    const waiting = [...ids.slice(at + 1), ...ids.slice(0, at)].find((id) => !['busy', 'decided'].includes(this.#panes.get(id)?.state));
    this.app.go('inbox', waiting);
  }

  #onShown(act) {
    if (this.#shown && this.open) act(this.#shown);
  }

  escape() {
    if (!this.#shown?.escape()) super.escape();
  }

  event(name, data) {
    if (name === 'tool_end') this.#panes.get(data.outcome.call_id)?.heard();
    if (name !== 'approval' && name !== 'decided') return;
    this.refresh();
    const pane = this.#panes.get(data.call_id);
    if (name === 'decided') pane?.heard();
    else if (pane && !pane.isDecided) pane.load();
  }
}

const STATES = { busy: ['runs', 'info'], decided: ['decided', 'quiet'] };

function drawRow({ tool, preview, reason, caller, session, sources, state, waits }) {
  return [
    h('span.row-top', h('b', tool), h('time', waits)),
    h('span.row-text', bare(preview, tool)),
    h('span.row-foot', STATES[state] ? chip(...STATES[state]) : null, sources?.length ? chip('outside data', 'warn') : null,
      h('span.quiet', [caller, session].filter(Boolean).join(' · ') || reason)),
  ];
}
