/**
 * The answers to a question. Beside the question where there is room; else a bar at the bottom whose rest unfolds.
 * What a person has typed here survives a question that is drawn again.
 */
import { button, fill, h } from './dom.js';
import { oneLine } from './text.js';

/**
 * @typedef {object} Answers
 * @property {(decision: 'once'|'session'|'always'|'reject', more?: {pattern?: string, message?: string}) => void} decide
 * @property {() => void} attempt
 * @property {() => void} edit
 * @property {() => void} link
 */

export class DecidePanel {
  #pattern;
  #patternNote = h('p.hint');
  #message;
  #deciding = [];
  #try;
  #edit;
  #link;
  #lasting;
  #may;
  #why = h('p.why', { 'aria-live': 'polite' });
  #suggested = '';

  /**
   * @param {Answers} answers
   * @param {{links: () => boolean, full: boolean}} may
   */
  constructor(answers, may) {
    this.#may = may;
    const once = button('Approve once', { kind: 'primary', key: 'a', test: 'approve-once', run: () => answers.decide('once') });
    const session = button('Approve for this session', { test: 'approve-session', run: () => answers.decide('session') });
    const remember = () => answers.decide('always', { pattern: this.#pattern.value });
    const always = button('Always for this pattern', { test: 'approve-always', run: remember });
    const reject = button('Reject', { kind: 'danger', key: 'r', test: 'reject', run: () => this.#reject(answers) });
    this.#try = button('Try it', { key: 't', test: 'try', title: 'Run it on a copy and show what it does', run: answers.attempt });
    this.#edit = button('Edit arguments', { key: 'e', test: 'edit-args', run: answers.edit });
    this.#link = button('Open on a phone', { test: 'link', run: answers.link });
    this.#deciding = [once, session, always, reject, this.#try, this.#edit, this.#link];
    this.#pattern = area('pattern', 2, { input: () => this.#notePattern() });
    this.#message = area('reject-message', 2, { keydown: (event) => this.#sendOnEnter(event, answers) });
    this.#message.placeholder = 'optional: what to do instead';
    const pattern = h('div.field', h('label', 'Pattern', this.#pattern), this.#patternNote, always);
    this.#lasting = [session, pattern];
    this.root = h(
      'aside.decide',
      { 'aria-label': 'Your answer' },
      this.#bar(once),
      h('div.field', session, this.#try, this.#edit, this.#link),
      pattern,
      h('div.field.rejection', h('label', 'Message to the agent', this.#message), reject),
      this.#why,
    );
  }

  /** What is always in sight; the two openers only where the rest is folded. */
  #bar(once) {
    const reject = button('Reject…', { kind: 'danger', run: () => this.focusMessage() });
    const more = button('More', { kind: 'quiet', run: () => this.#unfold(this.root.dataset.unfolded === 'all' ? null : 'all') });
    reject.classList.add('opener');
    more.classList.add('opener');
    return h('div.bar', once, reject, more);
  }

  #reject(answers) {
    answers.decide('reject', { message: this.#message.value.trim() || undefined });
  }

  #sendOnEnter(event, answers) {
    if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    this.#reject(answers);
  }

  #notePattern() {
    const shown = oneLine(this.#pattern.value);
    // A field shows text as it is, so what acts or hides in it is spelled out below.
    const text = shown === this.#pattern.value ? '* stays within one path segment, ** does not.' : `It reads: ${shown}`;
    fill(this.#patternNote, text);
  }

  /**
   * Fits the panel to a question.
   * @param {object} question
   */
  update(question) {
    if (this.#pattern.value === this.#suggested) {
      this.#suggested = question.subject ?? '';
      this.#pattern.value = this.#suggested;
      this.#notePattern();
    }
    this.#try.hidden = !this.#may.full || !question.can_try;
    this.#edit.hidden = !this.#may.full;
    for (const each of this.#lasting) each.hidden = !this.#may.full;
    this.#link.hidden = !this.#may.full || !this.#may.links();
  }

  /** Lets the person answer, or says why not. */
  enable(obstacle) {
    for (const each of this.#deciding) each.disabled = obstacle !== null;
    fill(this.#why, obstacle);
  }

  focusMessage() {
    this.#unfold('rejection');
    this.#message.focus();
  }

  /** @param {'all' | 'rejection' | null} what is in sight where there is no room for everything */
  #unfold(what) {
    if (what) this.root.dataset.unfolded = what;
    else delete this.root.dataset.unfolded;
  }

  /** Folds what is unfolded. Returns whether there was something. */
  fold() {
    const was = 'unfolded' in this.root.dataset;
    this.#unfold(null);
    return was;
  }
}

const area = (test, rows, on) => h('textarea', { test, rows, on, spellcheck: 'false', autocapitalize: 'off', autocomplete: 'off' });
