/**
 * The tools: what there is, what each may do, and a form to try it.
 */
import { at } from './api.js';
import { commandTree } from './command.js';
import { blank, button, callout, chip, errorBox, fill, h, loading, pairs, part, violation } from './dom.js';
import { FieldError, SchemaForm } from './form.js';
import { Browser } from './list.js';
import { outcomeView, undoPart, verdictLine } from './outcome.js';
import { effects, holdPart } from './question.js';
import { duration } from './text.js';

export class Tools extends Browser {
  /** @type {Map<string, object>} */
  #tools = new Map();
  /* A pane each, so that a half-filled form is still there when one comes back. */
  #panes = new Map();

  constructor(app) {
    super(app, {
      name: 'tools', label: 'Tools', test: 'tool-item', key: (tool) => tool.name, draw: drawRow, search: 'Search tools',
      nothing: ['No tool is chosen', 'Choose one to see what it takes, and to try it.'],
    });
  }

  async refresh() {
    try {
      const { tools } = await this.app.api.get('v1/tools', { dialect: 'haft' });
      this.#tools = new Map(tools.map((tool) => [tool.name, tool]));
      this.draw();
      if (this.chosen) this.choose(this.chosen);
    } catch (error) {
      if (!this.#tools.size) this.fail(error);
    }
  }

  draw() {
    const { fits } = this;
    const found = [...this.#tools.values()].filter((tool) => fits(`${tool.name} ${tool.description} ${tool.search_hint ?? ''}`));
    this.show(found, blank(this.#tools.size ? 'No tool fits' : 'There are no tools'));
  }

  pane(name) {
    const tool = this.#tools.get(name);
    if (!tool) return this.#tools.size ? blank('There is no such tool') : loading('Loading…');
    if (!this.#panes.has(name)) this.#panes.set(name, toolPane(tool, this.app));
    return this.#panes.get(name);
  }

  event(name) {
    if (name !== 'tools_changed') return;
    // A form of a schema that is no more would only mislead.
    this.#panes.clear();
    this.refresh();
  }
}

function drawRow(tool) {
  const [sentence] = tool.description.split(/(?<=\.)\s/);
  return [h('span.row-top', h('b', tool.name), effectChip(tool)), h('span.row-text.prose', sentence)];
}

function effectChip(tool) {
  if (tool.destructive) return chip('destructive', 'bad');
  return tool.read_only ? chip('reads', 'ok') : chip('has effects', 'warn');
}

function toolPane(tool, app) {
  const form = new SchemaForm(tool.input_schema ?? {});
  const result = h('div.result', { 'aria-live': 'polite' });
  const post = (verb, body) => app.api.post(`v1/tools/${at(tool.name)}/${verb}`, body);
  const ask = (verb, more, view) => () => run(form, result, async (args) => view(await post(verb, { args, ...more }), app));
  const call = ask('call', {}, ranView);
  const buttons = h(
    'div.buttons',
    button('Call', { kind: 'primary', test: 'tool-run', run: call }),
    button('Dry run', { test: 'tool-dry-run', run: ask('call', { dry_run: true }, ranView) }),
    button('Explain', { test: 'tool-explain', title: 'What would happen and why; nothing runs', run: ask('explain', {}, explainedView) }),
  );
  return h(
    'article.tool',
    h('header.headline', h('div.marks', effectChip(tool), facts(tool)), h('h2', { tabindex: -1 }, tool.name), h('p', tool.description)),
    h('form.part', { test: 'tool-form', on: { submit: (event) => { event.preventDefault(); call(); } } }, form.root, buttons),
    result,
  );
}

function facts(tool) {
  const words = { idempotent: 'idempotent', open_world: 'reaches beyond this machine', concurrency_safe: 'runs beside others' };
  const hold = Object.keys(words).filter((name) => tool[name]).map((name) => words[name]);
  return [...hold, `at most ${duration(tool.timeout_ms)}`].map((word) => h('span', word));
}

/** Reads the form, asks, and shows what came of it. */
async function run(form, result, ask) {
  let args;
  try {
    args = form.read();
  } catch (error) {
    if (error instanceof FieldError) return;
    throw error;
  }
  fill(result, loading('Working…'));
  try {
    fill(result, await ask(args));
  } catch (error) {
    (error.details?.violations ?? []).forEach((each) => form.complain(each.pointer, violation(each)));
    fill(result, error.isOutcome ? outcomeView(error.body) : errorBox(error));
  }
  result.scrollIntoView({ block: 'nearest' });
}

function ranView(outcome, app) {
  const waits = outcome.error?.kind === 'approval_required' ? outcome.error.details?.approval_id : null;
  if (waits) {
    const open = button('Open in the inbox', { run: () => app.go('inbox', waits) });
    return callout('info', h('strong', 'It waits for an answer: '), outcome.error.message, open);
  }
  return part('Outcome', {}, outcomeView(outcome), undoPart(outcome.undo, { app, id: outcome.call_id }));
}

function explainedView(explained) {
  const cast = explained.votes.filter((vote) => vote.decision || vote.erred);
  const tone = (decision) => (decision === 'allow' ? 'ok' : 'warn');
  const votes = cast.map(({ by, decision, reason }) => [by, [chip(decision ?? 'erred', tone(decision)), ' ', reason]]);
  const places = explained.places.map((place) => [place.access, h('code', place.shown)]);
  return part(
    'What would happen',
    {},
    verdictLine(explained.verdict),
    explained.problem ? callout('warn', h('strong', 'It would fail: '), explained.problem) : null,
    pairs([...votes, ...places]),
    explained.shell ? commandTree(explained.shell) : null,
    effects(explained),
    explained.hold ? holdPart(explained.hold) : null,
  );
}
