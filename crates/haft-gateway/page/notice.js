/**
 * Short messages at the edge: what an action did. Good news goes by itself, an error stays until it was read.
 */
import { button, h } from './dom.js';

const STAYS_MS = 8000;
const AT_MOST = 4;

export class Notices {
  /** @param {Element} root a live region */
  constructor(root) {
    this.root = root;
  }

  /**
   * @param {{text?: string, tone?: 'ok'|'info'|'warn'|'bad', actions?: {label: string, run: () => void}[]}} [how]
   */
  say(title, { text, tone = 'ok', actions = [] } = {}) {
    const close = () => node.remove();
    const buttons = actions.map(({ label, run }) => button(label, { kind: 'quiet', run: () => { close(); run(); } }));
    const node = h(
      `div.notice.${tone}`,
      { test: 'notice' },
      h('div.notice-text', h('strong', title), text ? h('p', text) : null),
      ...buttons,
      button('×', { kind: 'quiet', title: 'Dismiss', run: close }),
    );
    node.lastChild.setAttribute('aria-label', 'Dismiss');
    this.root.append(node);
    while (this.root.children.length > AT_MOST) this.root.firstChild.remove();
    if (tone === 'ok' || tone === 'info') setTimeout(close, STAYS_MS);
  }

  /**
   * @param {string} what could not be done
   * @param {import('./api.js').ApiError} error
   */
  fail(what, error) {
    const text = [error.message, error.hint].filter(Boolean).join('\n');
    this.say(what, { text, tone: 'bad' });
  }
}
