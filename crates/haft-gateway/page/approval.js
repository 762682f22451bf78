/**
 * One approval from being opened to being decided. Each has a pane of its own that is kept while it is undecided,
 * so what was typed and what is under way are still there when a person comes back to it.
 *
 * The rule that everything here serves: an answer is for what was on the screen, whole and for long enough to be
 * seen, and for nothing else.
 */
import { at } from './api.js';
import { DecidePanel } from './decide.js';
import { hasFolds } from './diff.js';
import { button, callout, errorBox, fill, h, loading } from './dom.js';
import { ArgumentsEditor } from './editor.js';
import { showLink } from './link.js';
import { cancelCall, outcomeView, undoPart } from './outcome.js';
import { differences, questionHead, questionParts } from './question.js';

/* Answers are not taken for so long after the pane changed by itself. */
const SETTLE_MS = 500;

/* What is said while an answer is under way, and after it. */
const ANSWERS = {
  once: ['Approved: it runs…', 'Approved once'],
  session: ['Approved for this session: it runs…', 'Approved for this session'],
  always: ['Approved for the pattern: it runs…', 'Approved, and remembered for the pattern'],
  reject: ['Rejecting…', 'Rejected'],
};
const STATES = { approved: 'Approved; it runs', done: 'Approved', rejected: 'Rejected' };

/** Until the browser has shown what was just drawn. */
const painted = () => new Promise((resolve) => { requestAnimationFrame(() => requestAnimationFrame(resolve)); });

/**
 * How news is introduced.
 * @typedef {{changed?: string, tone?: 'warn'|'info', late?: boolean}} Introduction
 * @typedef {object} PaneHow
 * @property {import('./api.js').Api} api
 * @property {import('./notice.js').Notices} notices
 * @property {() => boolean} links whether the operator lets approvals be opened on a phone
 * @property {boolean} full whether the token is good for more than looking at this approval and deciding it
 * @property {(pane: ApprovalPane, title: string, ok: boolean) => void} decided
 * @property {() => void} [next] goes on to what waits next
 */

export class ApprovalPane {
  #how;
  #path;
  #panel;
  #editor = null;
  #approval = null;
  #question = null;
  #changed = [];
  #drawn = '';
  #turn = 0;
  #calmAt = 0;
  #ours = false;
  #banner = h('div.banners');
  #body = h('div.body', loading('Loading the question…'));

  /** @param {PaneHow} how */
  constructor(id, how) {
    this.id = id;
    this.#how = how;
    this.#path = `v1/approvals/${at(id)}`;
    this.#panel = new DecidePanel({
      decide: (decision, more) => this.#decide(decision, more),
      attempt: () => this.attempt(),
      edit: () => this.edit(),
      link: () => this.#act('Making a link…', () => showLink(how.api, id)),
    }, how);
    this.root = h('article.approval', { test: 'approval', data: { id } }, h('div.about', this.#banner, this.#body), this.#panel.root);
    this.#become('loading');
  }

  /** @param {'loading'|'ready'|'busy'|'decided'|'elsewhere'|'failed'} state */
  #become(state) {
    this.root.dataset.state = state;
    this.#panel.root.hidden = this.#question === null || !['loading', 'ready', 'busy'].includes(state);
    this.#panel.enable(this.#obstacle());
  }

  get state() {
    return this.root.dataset.state;
  }

  get isDecided() {
    return this.state === 'decided';
  }

  /** Why no answer is taken now; empty if there is no need to say it, null if one is. */
  #obstacle() {
    if (this.state !== 'ready') return '';
    if (this.#editor) return 'Save or discard your edits first.';
    return Date.now() < this.#calmAt ? '' : null;
  }

  /** What is shown has changed without the person's doing, so what they press next may be meant for what was there. */
  settle() {
    this.#calmAt = Date.now() + SETTLE_MS;
    this.#panel.enable(this.#obstacle());
    setTimeout(() => this.#panel.enable(this.#obstacle()), SETTLE_MS + 10);
  }

  /** @param {Introduction} [words] */
  async load(words) {
    const turn = ++this.#turn;
    try {
      const found = await this.#how.api.get(this.#path);
      // What this page decided itself is told by the answer it got.
      if (turn === this.#turn && this.state !== 'busy' && !this.#ours) this.#take(found, words);
    } catch (error) {
      // What is shown already stays good until an answer to it is refused.
      if (turn === this.#turn && this.state === 'loading') this.#broken(error);
    }
  }

  #broken(error) {
    this.#question = null;
    this.#drawn = '';
    fill(this.#body, errorBox(error), button('Load again', { run: () => this.load() }));
    this.#become('failed');
  }

  #take({ approval, question }, { changed = 'It changed while you looked', tone = 'warn', late = false } = {}) {
    this.#approval = approval;
    if (approval.state !== 'pending') this.#decidedElsewhere(approval, late);
    else if (!question) this.#belongsElsewhere(approval);
    else {
      this.#changed = this.#question ? differences(this.#question, question) : [];
      this.#question = question;
      if (this.#changed.length) {
        fill(this.#banner, callout(tone, `${changed}: ${this.#changed.join(', ')}. Look again.`));
        this.settle();
      }
      this.#draw();
    }
  }

  /** Draws the question. It can be answered once it has been on the screen. */
  async #draw() {
    const turn = this.#turn;
    const drawn = JSON.stringify([this.#approval, this.#question, this.#editor !== null]);
    // The same again would only lose what is unfolded and selected.
    if (drawn === this.#drawn && this.state === 'ready') return;
    this.#become('loading');
    try {
      const open = (path) => this.#how.api.get(`${this.#path}/changes`, { path });
      const parts = () => [questionHead(this.#approval, this.#question), questionParts(this.#question, this.#editor?.root, this.#changed, open)];
      if (drawn !== this.#drawn) fill(this.#body, parts());
    } catch (error) {
      this.#broken({ message: 'The question cannot be shown, so it cannot be answered here', hint: error.message });
      return;
    }
    this.#drawn = drawn;
    this.#panel.update(this.#question);
    await painted();
    if (turn === this.#turn && this.state === 'loading') this.#become('ready');
  }

  #belongsElsewhere(approval) {
    const where = [h('strong', 'It cannot be decided here: '), 'it belongs to ', h('code', approval.root), ', or a rule decides about it by now.'];
    const how = h('p.hint', 'Decide it there: ', h('code', `haft approvals approve ${approval.id}`));
    fill(this.#body, questionHead(approval, null), callout('info', where, how));
    this.#become('elsewhere');
  }

  #decidedElsewhere({ state, decided_by: by, outcome }, late) {
    const title = `${STATES[state] ?? state}${by ? ` by ${by}` : ''}`;
    this.#finish(late ? `Your answer came too late. ${title}` : title, outcome?.call_id ? outcome : null, state !== 'rejected' && !late);
  }

  /** Shows how it ended. */
  #finish(title, outcome, ok) {
    const undo = this.#how.full && outcome ? undoPart(outcome.undo, { app: this.#how, id: outcome.call_id }) : null;
    const next = this.#how.next ? button('Next', { kind: 'quiet', test: 'next', run: this.#how.next }) : null;
    fill(this.#banner, h('div', { test: 'decision' }, callout(ok ? 'ok' : 'info', h('strong', title), next)));
    fill(this.#body, questionHead(this.#approval, this.#question), outcome ? outcomeView(outcome) : null, undo);
    this.#editor = null;
    this.#become('decided');
  }

  /** Somebody decided, or it ran. If it was this page's doing, the answer to its own request says more. */
  heard() {
    const over = this.isDecided && this.#approval?.state !== 'approved';
    if (this.state !== 'busy' && !this.#ours && !over) this.load();
  }

  /** An answer by key: only for what is whole on the screen. */
  approve() {
    if (this.#obstacle() !== null) return;
    if (hasFolds(this.root)) this.#tell('A part of the diff is folded', 'Unfold it first, or use the button.');
    else this.#decide('once');
  }

  reject() {
    if (this.#obstacle() === null) this.#panel.focusMessage();
  }

  #tell(title, text) {
    this.#how.notices.say(title, { text, tone: 'info' });
  }

  /** Runs it on a copy. */
  attempt() {
    if (this.#obstacle() !== null) return;
    if (!this.#question.can_try) {
      this.#tell('It cannot be tried', 'Only confined programs can, and only once.');
      return;
    }
    this.#act('Trying it on a copy…', async () => {
      const found = await this.#how.api.post(`${this.#path}/try`);
      this.#become('loading');
      this.#take(found, { changed: 'It was tried. New', tone: 'info' });
    });
  }

  edit() {
    if (this.#obstacle() !== null) return;
    this.#editor = new ArgumentsEditor(this.#question.args, { save: (args) => this.#save(args), cancel: () => this.escape() });
    this.#draw();
    this.#editor.focus();
  }

  async #save(args) {
    const found = await this.#how.api.post(`${this.#path}/edit`, { args });
    this.#editor = null;
    this.#turn += 1;
    this.#take(found, { changed: 'Saved. New', tone: 'info' });
  }

  /** Closes what is open. Returns whether there was something. */
  escape() {
    if (!this.#editor) return this.#panel.fold();
    this.#editor = null;
    this.#draw();
    return true;
  }

  /** Does something that takes a while, and comes back to the question. */
  async #act(label, work) {
    fill(this.#banner, callout('info', h('span.working', label)));
    this.#become('busy');
    try {
      await work();
      if (this.state === 'busy') fill(this.#banner);
    } catch (error) {
      fill(this.#banner, errorBox(error));
    }
    if (this.state === 'busy') this.#become('ready');
  }

  async #decide(decision, more = {}) {
    if (this.#obstacle() !== null) return;
    this.#panel.fold();
    const cancel = button('Cancel the run', { kind: 'quiet', run: () => cancelCall(this.#how, this.id) });
    cancel.hidden = decision === 'reject' || !this.#how.full;
    fill(this.#banner, callout('info', h('span.working', ANSWERS[decision][0]), cancel));
    this.#become('busy');
    const answer = await this.#how.api.post(this.#path, { decision, ...more }, this.#condition()).catch((error) => error);
    if (!(answer instanceof Error)) this.#concluded(decision, answer);
    else if (answer.isOutcome) this.#concluded(decision, answer.body);
    else this.#refused(answer);
  }

  /** The answer is for the question in this form: the gateway can refuse it for any other. */
  #condition() {
    return this.#question.basis ? { 'If-Match': `"${this.#question.basis}"` } : {};
  }

  #concluded(decision, answer) {
    const outcome = decision === 'reject' ? null : answer;
    const ok = outcome?.success ?? true;
    const title = ANSWERS[decision][1] + (ok ? '' : ', but it did not work');
    this.#ours = true;
    this.#finish(title, outcome, decision !== 'reject' && ok);
    this.#how.decided(this, title, ok);
  }

  #refused(error) {
    fill(this.#banner, errorBox(error));
    if (error.status && error.status !== 409) {
      this.#become('ready');
      return;
    }
    // Decided already, not what was shown, or nobody knows whether it arrived: gets it again and says what is new.
    this.#become('loading');
    this.settle();
    this.load({ changed: 'Your answer was not taken, because it changed', late: error.status === 409 });
  }
}
