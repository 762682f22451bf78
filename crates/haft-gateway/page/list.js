/**
 * A list with one chosen row, and the two panes (list and detail) that inbox, activity and tools share.
 * Rows are kept by key and changed in place, so that focus, hover and what is under a finger stay put.
 */
import { blank, button, fill, h } from './dom.js';

class List {
  /** @type {Map<string, {row: HTMLElement, stamp: string}>} */
  #rows = new Map();
  #how;
  #chosen = null;

  constructor(how) {
    this.#how = how;
    this.root = h('ul.rows', { 'aria-label': how.label });
  }

  update(items) {
    const keys = new Set(items.map(this.#how.key));
    for (const [key, { row }] of this.#rows) {
      if (keys.has(key)) continue;
      row.parentNode.remove();
      this.#rows.delete(key);
    }
    items.forEach((item, index) => this.#place(item, index));
  }

  #place(item, index) {
    const key = this.#how.key(item);
    const known = this.#rows.get(key) ?? this.#add(key);
    const stamp = JSON.stringify(item);
    if (known.stamp !== stamp) fill(known.row, this.#how.draw(item));
    known.stamp = stamp;
    const here = this.root.children[index];
    if (here !== known.row.parentNode) this.root.insertBefore(known.row.parentNode, here ?? null);
  }

  #add(key) {
    const row = h('button.row', { type: 'button', test: this.#how.test, data: { key }, on: { click: () => this.#how.pick(key) } });
    h('li', row);
    const known = { row, stamp: '' };
    this.#rows.set(key, known);
    mark(row, key === this.#chosen);
    return known;
  }

  get chosen() {
    return this.#chosen;
  }

  choose(key) {
    this.#chosen = key;
    for (const [each, { row }] of this.#rows) mark(row, each === key);
  }

  focus(key) {
    const row = this.#rows.get(key)?.row;
    row?.focus({ preventScroll: true });
    row?.scrollIntoView({ block: 'nearest' });
  }

  /** Goes so many rows further, with the focus. Returns the key there. */
  move(step) {
    const keys = [...this.root.children].map((item) => item.firstChild.dataset.key);
    const from = keys.indexOf(this.#chosen);
    const to = from < 0 ? 0 : Math.min(keys.length - 1, Math.max(0, from + step));
    this.focus(keys[to]);
    return keys[to] ?? null;
  }
}

function mark(row, chosen) {
  if (chosen) row.setAttribute('aria-current', 'true');
  else row.removeAttribute('aria-current');
}

/** A field to filter by. */
export const searchField = (label, input) => h('input', { type: 'search', placeholder: label, 'aria-label': label, on: { input } });

/* The same width as in style.css. */
const NARROW = matchMedia('(max-width: 759px)');

/**
 * List and detail: side by side where there is room, else one at a time.
 * @template T
 * @typedef {object} BrowserHow
 * @property {string} name of the view, also in the address
 * @property {string} label of the list, for those who cannot see it
 * @property {string} test the data-test of its rows
 * @property {(item: T) => string} key
 * @property {(item: T) => import('./dom.js').Child[]} draw a row
 * @property {string} search what the search field is called
 * @property {import('./dom.js').Child} [head]
 * @property {import('./dom.js').Child} [foot]
 * @property {[string, string]} nothing title and text of the detail while nothing is chosen
 */
export class Browser {
  #how;
  #list;
  #empty = h('div.list-empty', blank('Loading…'));
  #detail;
  #place = h('div.pane');
  /** @type {string | null} */
  chosen = null;

  /**
   * @param {import('./main.js').App} app
   * @param {BrowserHow<any>} how
   */
  constructor(app, how) {
    this.app = app;
    this.#how = how;
    this.#list = new List({ ...how, pick: (id) => app.go(how.name, id) });
    this.search = searchField(how.search, () => this.draw());
    const back = button('Back to the list', { kind: 'quiet', key: 'Esc', run: () => app.go(how.name) });
    this.#detail = h('div.detail', { tabindex: -1, role: 'region', 'aria-label': 'Details' }, h('div.back', back), this.#place);
    const head = h('div.side-head', this.search, how.head);
    this.root = h(`section.split.${how.name}`, h('div.side', head, h('div.scroll', this.#empty, this.#list.root, how.foot)), this.#detail);
    this.keys = { j: () => this.#move(1), k: () => this.#move(-1), Enter: () => this.#enter() };
    this.#shut();
  }

  /** Whether there is room for one pane only. */
  get narrow() {
    return NARROW.matches;
  }

  /** Whether the person can see the detail. */
  get open() {
    return !this.root.hidden && (!this.narrow || this.root.hasAttribute('data-open'));
  }

  /** Whether what is chosen is still worth coming back to. */
  get stays() {
    return this.chosen !== null;
  }

  /** Whether a text has all words of the search. */
  get fits() {
    const words = this.search.value.toLowerCase().split(/\s+/).filter(Boolean);
    return (text) => words.every((word) => text.toLowerCase().includes(word));
  }

  /**
   * @param {any[]} items
   * @param {import('./dom.js').Child} none what is said if there are none
   */
  show(items, none) {
    this.#list.update(items);
    fill(this.#empty, items.length ? null : none);
  }

  /** Says why there is no list. */
  fail(error) {
    fill(this.#empty, blank('This cannot be read', error.message));
  }

  /** @param {string | null} id from the address */
  route(id) {
    // Coming back from another view: what was open is still open.
    if (!id && !this.narrow && this.stays) return;
    this.choose(id);
  }

  /** Opens something. A view says with `pane(id)` what is shown, and hears with `left(id)` what is not any more. */
  choose(id) {
    const before = this.chosen;
    this.chosen = id;
    this.#list.choose(id);
    if (before !== null && before !== id) this.left?.(before);
    if (id) this.#show(this.pane(id));
    else {
      this.#shut();
      this.#list.focus(before);
    }
  }

  #show(node) {
    this.root.setAttribute('data-open', '');
    if (this.#place.firstChild === node) return;
    this.#place.replaceChildren(node);
    this.#detail.scrollTop = 0;
    // The row that had the focus is out of sight now.
    if (this.narrow) this.#detail.focus();
  }

  #shut() {
    this.#place.replaceChildren(blank(...this.#how.nothing));
    this.root.removeAttribute('data-open');
  }

  #move(step) {
    const id = this.#list.move(step);
    if (!id || id === this.chosen) return;
    if (this.narrow) this.#list.choose(id);
    else this.app.go(this.#how.name, id, { replace: true });
  }

  #enter() {
    if (this.open) this.#place.querySelector('h2')?.focus();
    else if (this.#list.chosen) this.app.go(this.#how.name, this.#list.chosen);
  }

  escape() {
    if (this.narrow) this.app.go(this.#how.name);
  }
}
