/**
 * Any JSON value as something to read: names beside values, lists, and tables for lists of alike things.
 */
import { h, pairs } from './dom.js';

const isObject = (value) => value !== null && typeof value === 'object' && !Array.isArray(value);

/**
 * @param {unknown} value
 * @returns {import('./dom.js').Child}
 */
export function valueView(value) {
  if (Array.isArray(value)) return listView(value);
  if (isObject(value)) return pairs(Object.entries(value).map(([name, each]) => [name, valueView(each)]));
  if (value === null || value === '') return h('span.quiet', value === null ? 'none' : 'empty');
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  return typeof value === 'number' ? value.toLocaleString() : h('code', value);
}

function listView(values) {
  if (!values.length) return h('span.quiet', 'none');
  if (!values.every(isObject)) return values.map((value, index) => [index ? ', ' : '', valueView(value)]);
  const columns = [...new Set(values.flatMap(Object.keys))];
  return tableView(columns, values.map((value) => columns.map((name) => (name in value ? valueView(value[name]) : ''))));
}

/**
 * @param {string[]} columns
 * @param {import('./dom.js').Child[][]} rows
 */
export function tableView(columns, rows) {
  const head = h('thead', h('tr', columns.map((name) => h('th', name))));
  const body = h('tbody', rows.map((row) => h('tr', row.map((cell) => h('td', cell)))));
  return h('div.table', { tabindex: 0, role: 'group', 'aria-label': columns.join(', ') }, h('table', head, body));
}

/**
 * The leaves of nested objects by dotted name.
 * @param {Record<string, unknown>} value
 * @returns {[string, unknown][]}
 */
export function leaves(value, prefix = '') {
  return Object.entries(value).flatMap(([name, each]) => {
    const path = prefix + name;
    return isObject(each) && Object.keys(each).length ? leaves(each, `${path}.`) : [[path, each]];
  });
}
