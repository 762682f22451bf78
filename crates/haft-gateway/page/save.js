/**
 * Saving what the gateway has: fetched rather than linked to, because a link cannot carry the token out of sight.
 */
import { h } from './dom.js';

/* Long enough for the browser to have taken it. */
const KEPT_MS = 60_000;

/**
 * @param {import('./api.js').Api} api
 * @param {string} path
 * @param {string} name of the file
 */
export async function save(api, path, name) {
  const response = await api.open(path);
  const url = URL.createObjectURL(await response.blob());
  h('a', { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), KEPT_MS);
}
