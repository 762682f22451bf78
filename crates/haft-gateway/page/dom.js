/**
 * The only place where elements are made. Every string that becomes a child or an attribute is made visible
 * first (text.js), and only attributes that cannot run anything are known: so text from a model stays text
 * wherever a view puts it.
 */
import { visible } from './text.js';

const ATTRIBUTES = new Set([
  'alt', 'autocapitalize', 'autocomplete', 'class', 'download', 'enterkeyhint', 'for', 'height', 'href', 'id', 'inputmode', 'max',
  'maxlength', 'min', 'name', 'placeholder', 'role', 'rows', 'spellcheck', 'src', 'step', 'tabindex', 'title', 'type', 'width',
]);
/* Set as properties. `value` is left as it is: what is edited must not be changed by being shown. */
const PROPERTIES = new Set(['checked', 'disabled', 'hidden', 'open', 'readOnly', 'required', 'selected', 'value']);
const URLS = { href: /^(#|blob:)/, src: /^data:image\/svg\+xml[;,]/ };

/** @typedef {Node | string | number | null | undefined | false | Child[]} Child */

/**
 * Makes an element: `h('p.note', {title: 'x'}, 'text', node)`. Attributes may be left out.
 * `test` becomes data-test, `on` holds listeners, `data` holds data attributes.
 * @param {string} spec tag and classes
 * @param {Record<string, unknown> | Child} [attributes]
 * @param {...Child} children
 */
export function h(spec, attributes, ...children) {
  const [tag, ...classes] = spec.split('.');
  const node = document.createElement(tag);
  if (classes.length) node.className = classes.join(' ');
  if (isPlain(attributes)) Object.entries(attributes).forEach(([name, value]) => put(node, name, value));
  else children.unshift(attributes);
  node.append(...nodes(children));
  return node;
}

const SVG = 'http://www.w3.org/2000/svg';
/* Sizes and places are attributes here: the page's policy allows no style in the markup. */
const DRAWN = new Set(['class', 'd', 'height', 'role', 'rx', 'viewBox', 'width', 'x', 'y']);

/** Makes a part of a picture, in the same way; it knows even less that could run. */
export function drawn(spec, attributes, ...children) {
  const [tag, ...classes] = spec.split('.');
  const node = document.createElementNS(SVG, tag);
  if (classes.length) node.setAttribute('class', classes.join(' '));
  for (const [name, value] of Object.entries(attributes)) {
    if (name === 'data') Object.entries(value).forEach(([key, text]) => { node.dataset[key] = visible(text); });
    else if (DRAWN.has(name) || name.startsWith('aria-')) node.setAttribute(name, visible(value));
    else throw new Error(`unknown attribute ${name}`);
  }
  node.append(...nodes(children));
  return node;
}

/** Puts other children in place of those that are there. */
export function fill(node, ...children) {
  node.replaceChildren(...nodes(children));
}

function nodes(children) {
  const wanted = children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false);
  return wanted.map((child) => (child instanceof Node ? child : document.createTextNode(visible(child))));
}

const isPlain = (value) => value !== null && typeof value === 'object' && Object.getPrototypeOf(value) === Object.prototype;

function put(node, name, value) {
  if (value === undefined || value === null) return;
  if (name === 'on') Object.entries(value).forEach(([type, listener]) => node.addEventListener(type, listener));
  else if (name === 'test') node.dataset.test = value;
  else if (name === 'data') Object.entries(value).forEach(([key, text]) => { node.dataset[key] = visible(text); });
  else if (PROPERTIES.has(name)) node[name] = value;
  else if (ATTRIBUTES.has(name) || name.startsWith('aria-')) node.setAttribute(name, checked(name, visible(value)));
  else throw new Error(`unknown attribute ${name}`);
}

function checked(name, text) {
  if (URLS[name] && !URLS[name].test(text)) throw new Error(`${name} may not lead to ${text}`);
  return text;
}

/**
 * A button, with the key that does the same.
 * @param {{kind?: 'primary'|'danger'|'quiet', key?: string, test?: string, title?: string, run: () => void}} how
 */
export function button(label, { kind, key, test, title, run }) {
  const attributes = { type: 'button', test, title, 'aria-keyshortcuts': key, on: { click: run } };
  return h(`button.button${kind ? `.${kind}` : ''}`, attributes, h('span', label), key ? h('kbd', { 'aria-hidden': 'true' }, key) : null);
}

/** A small mark; tones are ok, warn, bad, info and quiet, here and below. */
export const chip = (text, tone = 'quiet') => h(`span.chip.${tone}`, text);

/** A titled part of a detail. */
export const part = (title, { test, aside }, ...children) => h('section.part', { test }, h('header', h('h3', title), aside), ...children);

/** A message in a box. */
export const callout = (tone, ...children) => h(`div.callout.${tone}`, { role: tone === 'bad' ? 'alert' : 'status' }, ...children);

/** An error of the gateway with what to do about it. */
export function errorBox({ kind, message, hint, details }) {
  const lines = (details?.violations ?? []).map((each) => h('li', h('code', each.pointer || '/'), ` ${violation(each)}`));
  return callout(
    'bad',
    h('p', h('strong', message), kind ? h('span.kind', kind) : null),
    lines.length ? h('ul', lines) : null,
    hint ? h('p.hint', hint) : null,
  );
}

export const violation = ({ expected, found }) => `wants ${expected}, found ${found}`;

/** What stands where there is nothing. */
export const blank = (title, text) => h('div.blank', h('p.blank-title', title), text ? h('p', text) : null);

export const loading = (what) => h('div.blank.loading', { role: 'status' }, h('p', what));

/** Text as it stands, over lines. */
export const block = (text, label) => h('pre.block', { tabindex: 0, role: label ? 'group' : undefined, 'aria-label': label }, text);

/** Names and what belongs to them. */
export const pairs = (rows) => h('dl.pairs', rows.map(([name, value]) => h('div', h('dt', name), h('dd', value))));

/** Texts, one below the other. */
export const codes = (texts) => h('ul.plain', texts.map((text) => h('li', h('code', text))));

/** A button that copies, where the browser lets a page do that. */
export function copyButton(text) {
  if (!navigator.clipboard) return null;
  const node = button('Copy', { kind: 'quiet', run: async () => {
    fill(node, await navigator.clipboard.writeText(text).then(() => 'Copied', () => 'Not copied'));
  } });
  return node;
}
