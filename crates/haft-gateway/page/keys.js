/**
 * The keyboard: one listener that hands a key to the view that is shown, and the sheet that lists the keys.
 */
import { button, h } from './dom.js';

const SHEET = [
  ['Everywhere', [
    ['1 … 6', 'switch views'],
    ['j k', 'next, previous'],
    ['Enter', 'open'],
    ['/', 'search'],
    ['Esc', 'close, go back, leave a field'],
    ['?', 'this sheet'],
  ]],
  ['Inbox', [
    ['a', 'approve once what is shown'],
    ['r', 'reject: write a message, Enter sends it'],
    ['t', 'try it without keeping anything'],
    ['e', 'edit the arguments'],
  ]],
];

const TYPING = 'input:not([type=checkbox]), textarea, select';

/** @param {(key: string) => boolean} act whether the key meant something */
export function listenToKeys(act) {
  document.addEventListener('keydown', (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    // A dialog has the keyboard to itself; the browser closes it on Escape.
    if (document.querySelector('dialog[open]')) return;
    if (event.target.closest?.(TYPING)) {
      if (event.key === 'Escape') event.target.blur();
      return;
    }
    // A key that is held down must not decide one thing after another.
    if (event.repeat && !['j', 'k'].includes(event.key)) return;
    if (act(event.key)) event.preventDefault();
  });
}

/**
 * A dialog over everything, gone when closed.
 * @param {...import('./dom.js').Child} children
 */
export function dialog(title, ...children) {
  const close = button('Close', { key: 'Esc', run: () => node.close() });
  const node = h('dialog', { 'aria-label': title, on: { close: () => node.remove() } }, h('header', h('h2', title), close), ...children);
  // A click beside the sheet lands on the dialog itself.
  node.addEventListener('click', (event) => { if (event.target === node) node.close(); });
  document.body.append(node);
  node.showModal();
  return node;
}

export function showKeys() {
  const row = ([keys, does]) => h('div', h('dt', keys.split(' ').map((key) => h('kbd', key))), h('dd', does));
  dialog('Keys', h('div.key-groups', SHEET.map(([title, keys]) => h('section', h('h3', title), h('dl.keys', keys.map(row))))));
}
