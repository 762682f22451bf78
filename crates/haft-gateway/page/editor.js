/**
 * Arguments as JSON to be changed: says what is wrong while one types, and saves only what can be read.
 */
import { button, errorBox, fill, h, part } from './dom.js';
import { editableJson, jsonProblem } from './text.js';

export class ArgumentsEditor {
  #area;
  #problem = h('p.problem', { test: 'args-problem', 'aria-live': 'polite', id: 'args-problem' });
  #failure = h('div');
  #save;

  /**
   * @param {Record<string, unknown>} args
   * @param {{save: (args: object) => Promise<void>, cancel: () => void}} hooks
   */
  constructor(args, { save, cancel }) {
    const text = editableJson(args);
    this.#area = h('textarea', {
      test: 'args-text', rows: 3, value: text, spellcheck: 'false', autocapitalize: 'off',
      'aria-label': 'Arguments as JSON', 'aria-describedby': 'args-problem',
      on: { input: () => this.#check(), keydown: (event) => this.#key(event, save) },
    });
    this.#save = button('Save arguments', { kind: 'primary', test: 'save-args', run: () => this.#send(save) });
    const buttons = h('div.buttons', this.#save, button('Discard', { kind: 'quiet', run: cancel }));
    const note = h('p.quiet', 'What you save is checked and decided anew, then shown here again for your answer.');
    this.root = part('Edit the arguments', { test: 'args-editor' }, note, this.#area, this.#problem, this.#failure, buttons);
  }

  focus() {
    this.#area.focus();
    this.#area.setSelectionRange(0, 0);
    this.root.scrollIntoView({ block: 'nearest' });
  }

  #check() {
    const problem = jsonProblem(this.#area.value);
    fill(this.#problem, problem);
    this.#save.disabled = problem !== null;
    this.#area.setAttribute('aria-invalid', String(problem !== null));
  }

  #key(event, save) {
    if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    if (!this.#save.disabled) this.#send(save);
  }

  async #send(save) {
    this.#save.disabled = true;
    fill(this.#failure);
    try {
      await save(JSON.parse(this.#area.value));
    } catch (error) {
      fill(this.#failure, errorBox(error));
      this.#save.disabled = false;
    }
  }
}
