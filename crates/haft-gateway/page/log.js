/**
 * The audit log: filter it, see whether its chain holds, take it with you.
 */
import { blank, block, button, chip, errorBox, fill, h } from './dom.js';
import { searchField } from './list.js';
import { save } from './save.js';
import { clock, editableJson, plural } from './text.js';

const PAGE = 200;
const KINDS = ['intent', 'outcome', 'refused', 'interrupted', 'approval', 'grant', 'trust', 'undo', 'session', 'task'];
const TONES = { outcome: 'ok', refused: 'bad', interrupted: 'bad', approval: 'info', grant: 'warn', trust: 'warn', undo: 'info' };

export class Log {
  #app;
  #kind;
  #call;
  #rows = h('div.log-rows');
  #empty = h('div');
  #more;
  #oldest = null;
  #lastSeq = null;
  #verified = h('span.verified', { test: 'log-verify-state', 'aria-live': 'polite' });
  #entered = false;
  #typed = null;
  #soon = null;

  constructor(app) {
    this.#app = app;
    const changed = () => { clearTimeout(this.#typed); this.#typed = setTimeout(() => this.#reload(), 200); };
    this.search = searchField('Filter by text', changed);
    this.#call = searchField('Filter by call id', changed);
    const kinds = ['', ...KINDS].map((kind) => h('option', { value: kind }, kind || 'all kinds'));
    this.#kind = h('select', { 'aria-label': 'Kind', on: { change: changed } }, kinds);
    this.#more = button('Show older', { kind: 'quiet', run: () => this.#older() });
    const actions = h(
      'div.buttons',
      this.#verified,
      button('Verify', { test: 'log-verify', run: () => this.#verify() }),
      button('Export', { test: 'log-export', run: () => this.#export() }),
    );
    const toolbar = h('div.toolbar', this.search, this.#kind, this.#call, actions);
    this.root = h('section.log', toolbar, h('div.scroll', this.#empty, this.#rows, this.#more));
    this.keys = { j: () => this.#move(1), k: () => this.#move(-1) };
    fill(this.#empty, blank('Loading…'));
    this.#more.hidden = true;
  }

  /** @param {string | null} call to see the records of this call only */
  route(call) {
    if (call) this.#call.value = call;
    if (call || !this.#entered) this.#reload();
    if (!this.#entered) this.#verify();
    this.#entered = true;
  }

  refresh() {
    if (this.#entered) this.#reload();
  }

  get #filter() {
    return { q: this.search.value.trim(), kind: this.#kind.value, call: this.#call.value.trim() };
  }

  async #reload() {
    const filter = this.#filter;
    try {
      const { records, head } = await this.#app.api.get('v1/log', { ...filter, limit: PAGE });
      if (JSON.stringify(filter) !== JSON.stringify(this.#filter)) return;
      this.#lastSeq = head.seq;
      this.#rows.replaceChildren();
      this.#append(records);
      const none = Object.values(filter).some(Boolean) ? 'No record fits the filter' : 'The log is empty';
      fill(this.#empty, records.length ? null : blank(none));
    } catch (error) {
      fill(this.#empty, errorBox(error));
    }
  }

  /** Puts what comes before the oldest that is shown below it. */
  async #older() {
    const [filter, before] = [this.#filter, this.#oldest];
    try {
      const { records } = await this.#app.api.get('v1/log', { ...filter, before, limit: PAGE });
      if (before === this.#oldest && JSON.stringify(filter) === JSON.stringify(this.#filter)) this.#append(records);
    } catch (error) {
      this.#app.notices.fail('Older records cannot be read', error);
    }
  }

  /** @param {object[]} records newest first */
  #append(records) {
    this.#rows.append(...records.map((record) => this.#row(record)));
    this.#oldest = records.at(-1)?.seq ?? this.#oldest;
    this.#more.hidden = records.length < PAGE;
  }

  /** Puts what is new on top and leaves the rest, and what is unfolded in it, as it is. */
  async #extend() {
    if (this.#lastSeq === null || this.root.hidden) return;
    try {
      const { records, head } = await this.#app.api.get('v1/log', { ...this.#filter, after: this.#lastSeq, limit: PAGE });
      const fresh = records.filter(({ seq }) => seq > this.#lastSeq).sort((one, other) => other.seq - one.seq);
      this.#lastSeq = Math.max(this.#lastSeq, records.length < PAGE ? head.seq : fresh[0].seq);
      this.#rows.prepend(...fresh.map((record) => this.#row(record)));
      if (fresh.length) fill(this.#empty);
    } catch {
      // The connection's state is shown at the top; the next event asks again.
    }
  }

  #row({ seq, hash, body }) {
    const error = body.error?.message;
    const said = [body.tool, body.said, body.by && `by ${body.by}`, error, !error && body.verdict?.reason].filter(Boolean).join(' · ');
    const about = h('div.log-about');
    const open = () => fill(
      about,
      h('p.marks', h('span.quiet', 'hash '), h('code', hash), body.call ? this.#callButtons(body.call) : null),
      block(editableJson(body), `Record ${seq}`),
    );
    return h(
      'details.log-row',
      { test: 'log-row', on: { toggle: (event) => { if (event.target.open) open(); } } },
      h('summary', h('span.seq', seq), h('time', clock(body.at)), chip(body.kind, TONES[body.kind]), h('span.said', said),
        h('code.quiet.call-id', body.call)),
      about,
    );
  }

  #callButtons(call) {
    return [
      button('Only this call', { kind: 'quiet', run: () => { this.#call.value = call; this.#reload(); } }),
      button('Show the call', { kind: 'quiet', run: () => this.#app.go('activity', call) }),
    ];
  }

  async #verify() {
    fill(this.#verified, h('span.quiet.working', 'verifying…'));
    try {
      const { ok, head, broken } = await this.#app.api.get('v1/log/verify');
      fill(this.#verified, ok
        ? [chip('chain holds', 'ok'), h('span.quiet', ` ${plural(head.seq, 'record')}, head ${head.hash.slice(0, 12)}`)]
        : [chip('chain broken', 'bad'), ` at record ${broken.seq}: ${broken.why}`]);
    } catch (error) {
      fill(this.#verified, chip('not verified', 'warn'), ` ${error.message}`);
    }
  }

  async #export() {
    const { api, notices } = this.#app;
    try {
      await save(api, 'v1/log/export', `haft-log-${new Date().toISOString().slice(0, 10)}.jsonl`);
      notices.say('Exported', { text: 'One record a line, as JSON.' });
    } catch (error) {
      notices.fail('Not exported', error);
    }
  }

  #move(step) {
    const rows = [...this.#rows.children];
    const from = rows.indexOf(document.activeElement?.closest('.log-row'));
    const to = from < 0 ? 0 : Math.min(rows.length - 1, Math.max(0, from + step));
    rows[to]?.querySelector('summary').focus();
  }

  escape() {
    document.activeElement?.closest('.log-row')?.removeAttribute('open');
  }

  event(name) {
    if (!['tool_start', 'tool_end', 'approval', 'decided'].includes(name)) return;
    // Once for all that happen in a moment.
    this.#soon ??= setTimeout(() => { this.#soon = null; this.#extend(); }, 300);
  }
}
