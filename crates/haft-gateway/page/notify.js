/**
 * Tells a person who looks elsewhere that something waits: the number in the title, and desktop notifications,
 * which are only ever asked for by a button.
 */
import { button, fill, h } from './dom.js';
import { oneLine } from './text.js';

const LENGTH_MAX = 140;
const STANDS = { granted: 'notifications are on', denied: 'notifications are blocked', absent: 'not offered by the browser here' };

export class Notifier {
  /** @type {Map<string, Notification>} */
  #shown = new Map();
  #open;

  /** @param {(id: string) => void} open shows an approval */
  constructor(open) {
    this.#open = open;
  }

  /** The button, as long as nobody has answered what it asks. */
  offer() {
    return this.#permission === 'default' ? this.control() : null;
  }

  /** How it stands, and the button that asks. */
  control() {
    const node = h('span');
    const ask = button('Notify me', { title: 'Show a desktop notification when something waits', run: async () => {
      await Notification.requestPermission();
      draw();
    } });
    const draw = () => fill(node, STANDS[this.#permission] ?? ask);
    draw();
    return node;
  }

  get #permission() {
    // Browsers offer this to pages from this machine or over TLS only.
    return 'Notification' in window && isSecureContext ? Notification.permission : 'absent';
  }

  /** @param {number} count how many wait */
  badge(count) {
    document.title = count ? `(${count}) haft` : 'haft';
  }

  /** @param {{call_id: string, preview: string}} event */
  waiting({ call_id: id, preview }) {
    const looking = document.visibilityState === 'visible' && document.hasFocus();
    if (looking || this.#permission !== 'granted') return;
    try {
      const body = oneLine(preview).slice(0, LENGTH_MAX);
      const note = new Notification('haft: a call waits for you', { body, tag: id, icon: 'static/icon.svg' });
      note.onclick = () => { window.focus(); this.#open(id); note.close(); };
      this.#shown.set(id, note);
    } catch {
      // Phones allow this to service workers only; the title still says it.
    }
  }

  /** @param {string} id decided, so nobody has to come for it */
  decided(id) {
    this.#shown.get(id)?.close();
    this.#shown.delete(id);
  }
}
