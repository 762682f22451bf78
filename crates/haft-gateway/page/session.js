/**
 * How this page may speak to the gateway: a token from the address, from a single-use link, or pasted. It is
 * kept in sessionStorage only, so that it ends with the tab, and never stays in the address or the history.
 */
import { at } from './api.js';

const KEY = 'haft.access';

/**
 * A token, and the one approval that it is for if it came from a link.
 * @typedef {{token: string, only?: string}} Access
 */

/**
 * @param {import('./api.js').Api} api without a token
 * @returns {Promise<Access | null>}
 */
export async function findAccess(api) {
  const given = new URLSearchParams(/^#(token|link)=/.test(location.hash) ? location.hash.slice(1) : '');
  if (given.size) history.replaceState(null, '', location.pathname);
  if (given.has('token')) return keepAccess({ token: given.get('token') });
  if (given.has('link')) {
    const { token, approval } = await api.post(`v1/links/${at(given.get('link'))}`);
    return keepAccess({ token, only: approval });
  }
  const kept = sessionStorage.getItem(KEY);
  return kept ? JSON.parse(kept) : null;
}

/** @param {Access} access */
export function keepAccess(access) {
  sessionStorage.setItem(KEY, JSON.stringify(access));
  return access;
}

export function forgetAccess() {
  sessionStorage.removeItem(KEY);
}
