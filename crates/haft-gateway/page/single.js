/**
 * The page as a single-use link opens it: one approval and nothing else. Its token is good for no events, so it
 * looks again from time to time.
 */
import { ApprovalPane } from './approval.js';
import { FormPane, isForm } from './asked.js';
import { h } from './dom.js';

const LOOK_AGAIN_MS = 5000;

export class Single {
  /** @param {{api: import('./api.js').Api, notices: import('./notice.js').Notices}} app */
  constructor(id, { api, notices }) {
    const Pane = isForm(id) ? FormPane : ApprovalPane;
    const pane = new Pane(id, { api, notices, links: () => false, full: false, decided: () => {} });
    this.root = h('section.single', h('div.detail', h('div.pane', pane.root)));
    this.keys = { a: () => pane.approve(), r: () => pane.reject(), Escape: () => pane.escape() };
    pane.load();
    setInterval(() => {
      if (document.visibilityState === 'visible' && pane.state === 'ready') pane.load();
    }, LOOK_AGAIN_MS);
  }
}
