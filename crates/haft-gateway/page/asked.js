/**
 * One form that an agent or a tool wants filled in, from being opened to being answered. It stands in the inbox like
 * an approval and is used like one; but nothing runs here: whoever asked gets the answer.
 */
import { at } from './api.js';
import { button, callout, errorBox, fill, h, loading } from './dom.js';
import { questionHead } from './question.js';

const STATES = { done: 'Answered', rejected: 'Declined, or not asked any more' };

let count = 0;

/** What a field shows and how it is read: undefined is left out. */
function control(part, required) {
  const options = part.enum ?? part.oneOf?.map((one) => one.const);
  const titles = part.oneOf?.map((one) => one.title ?? one.const) ?? part.enumNames ?? options;
  if (options) return choice('radio', { options, titles, chosen: [part.default], required });
  if (part.type === 'array') {
    const { enum: several = [] } = part.items ?? {};
    return choice('checkbox', { options: several, titles: several, chosen: part.default ?? [], required });
  }
  if (part.type === 'boolean') return confirm(part, required);
  return text(part, required);
}

function choice(type, { options, titles, chosen, required }) {
  count += 1;
  const name = `choice-${count}`;
  const inputs = options.map((value, index) => h('input', { type, name, value: String(index), checked: chosen.includes(value) }));
  const node = h('div.choices', inputs.map((input, index) => h('label.inline', input, ' ', titles[index])));
  const read = () => {
    const given = options.filter((_, index) => inputs[index].checked);
    if (type === 'checkbox') return given;
    if (!given.length && required) throw new Error('Choose one.');
    return given[0];
  };
  return { node, read };
}

function confirm(part, required) {
  const chosen = part.default === undefined ? [] : [part.default];
  return choice('radio', { options: [true, false], titles: ['Yes', 'No'], chosen, required });
}

function text(part, required) {
  const number = part.type === 'integer' || part.type === 'number';
  const input = number
    ? h('input', { type: 'number', step: part.type === 'integer' ? 1 : 'any' })
    : h('textarea', { rows: 2, spellcheck: 'false', autocapitalize: 'off', autocomplete: 'off' });
  input.value = part.default ?? '';
  const read = () => {
    if (input.value === '' && required) throw new Error('It has to be answered.');
    if (input.value === '') return undefined;
    return number ? Number(input.value) : input.value;
  };
  return { node: input, read };
}

export class FormPane {
  #how;
  #path;
  #fields = [];
  #approval = null;
  #drawn = '';
  #banner = h('div.banners');
  #body = h('div.body', loading('Loading the question…'));
  #answer;
  #decline;

  /** @param {import('./approval.js').PaneHow} how */
  constructor(id, how) {
    this.id = id;
    this.#how = how;
    this.#path = `v1/approvals/${at(id)}`;
    this.#answer = button('Send the answer', { kind: 'primary', test: 'answer', run: () => this.approve() });
    this.#decline = button('Decline', { kind: 'danger', test: 'decline', run: () => this.#send({ decision: 'reject' }, 'Declined') });
    const panel = h('aside.decide', { 'aria-label': 'Your answer' }, h('div.bar', this.#answer, this.#decline));
    this.root = h('article.approval', { test: 'form', data: { id } }, h('div.about', this.#banner, this.#body), panel);
    this.#become('loading');
  }

  #become(state) {
    this.root.dataset.state = state;
    this.#answer.disabled = state !== 'ready';
    this.#decline.disabled = state !== 'ready';
  }

  get state() {
    return this.root.dataset.state;
  }

  get isDecided() {
    return this.state === 'decided';
  }

  async load() {
    try {
      const { approval } = await this.#how.api.get(this.#path);
      if (this.state !== 'busy' && !this.isDecided) this.#take(approval);
    } catch (error) {
      if (this.state === 'loading') fill(this.#body, errorBox(error), button('Load again', { run: () => this.load() }));
    }
  }

  #take(approval) {
    this.#approval = approval;
    if (approval.state !== 'pending') {
      const by = approval.decided_by ? ` by ${approval.decided_by}` : '';
      this.#finish(`${STATES[approval.state] ?? approval.state}${by}`, approval.state === 'done');
      return;
    }
    // The same again would lose what was typed.
    const drawn = JSON.stringify(approval.form);
    if (drawn !== this.#drawn) this.#draw(approval.form);
    this.#drawn = drawn;
    this.#become('ready');
  }

  #draw({ from, message, schema }) {
    const required = new Set(schema.required ?? []);
    this.#fields = Object.entries(schema.properties ?? {}).map(([name, part]) => ({
      name, part, problem: h('p.problem', { 'aria-live': 'polite' }), ...control(part, required.has(name)),
    }));
    const rows = this.#fields.map(({ name, part, node, problem }) => h('fieldset.form-field', { data: { name } },
      h('legend', part.title ?? name, required.has(name) ? h('span.required', ' required') : null),
      part.description ? h('p.hint', part.description) : null, node, problem));
    const said = message.split('\n').map((line) => h('p', line));
    fill(this.#body, questionHead(this.#approval, null), h('section.part', h('p.quiet', `${from} asks:`), said), h('section.part', rows));
  }

  /** Sends what is filled in. */
  approve() {
    if (this.state !== 'ready') return;
    const answer = {};
    for (const { name, read, problem } of this.#fields) {
      fill(problem);
      try {
        const value = read();
        if (value !== undefined) answer[name] = value;
      } catch (error) {
        fill(problem, error.message);
        return;
      }
    }
    this.#send({ decision: 'answer', answer }, 'Answered');
  }

  async #send(body, title) {
    if (this.state !== 'ready') return;
    this.#become('busy');
    try {
      await this.#how.api.post(this.#path, body);
      this.#finish(title, body.decision === 'answer');
      this.#how.decided(this, title, true);
    } catch (error) {
      fill(this.#banner, errorBox(error));
      this.#become('ready');
      if (error.status === 409) this.load();
    }
  }

  #finish(title, ok) {
    const next = this.#how.next ? button('Next', { kind: 'quiet', test: 'next', run: this.#how.next }) : null;
    fill(this.#banner, h('div', { test: 'decision' }, callout(ok ? 'ok' : 'info', h('strong', title), next)));
    fill(this.#body, questionHead(this.#approval, null));
    this.#become('decided');
  }

  heard() {
    if (this.state !== 'busy' && !this.isDecided) this.load();
  }

  /* What only an approval has. */
  settle() {}
  reject() { this.#decline.focus(); }
  attempt() {}
  edit() {}
  escape() { return false; }
}

/** Whether an id is that of a form. */
export const isForm = (id) => id.startsWith('form-');
