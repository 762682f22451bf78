/**
 * Requests to the gateway. Every failure, of the network too, becomes an ApiError with words for a person.
 */

/** What went wrong with a request. `body` is the whole answer: a call that failed answers with its outcome. */
export class ApiError extends Error {
  /**
   * @param {number} status 0 if there was no answer
   * @param {{kind: string, message: string, hint?: string, details?: object}} error
   * @param {object} [body]
   */
  constructor(status, { kind, message, hint, details }, body = {}) {
    super(message);
    Object.assign(this, { status, kind, hint, details, body });
  }

  /** Whether it is the outcome of a call that was made, rather than a request that was not taken. */
  get isOutcome() {
    return typeof this.body.call_id === 'string' && typeof this.body.success === 'boolean';
  }
}

export class Api {
  #token;
  #refused;

  /** @param {() => void} refused called when the gateway does not know the token (any more) */
  constructor(token, refused) {
    this.#token = token;
    this.#refused = refused;
  }

  /**
   * @param {string} path relative to the gateway, such as `v1/tools`
   * @param {Record<string, string | number | boolean | undefined>} [query]
   */
  async get(path, query = {}) {
    return (await this.open(withQuery(path, query))).json();
  }

  /**
   * @param {object} [body]
   * @param {Record<string, string>} [headers]
   */
  async post(path, body = {}, headers = {}) {
    const how = { method: 'POST', body: JSON.stringify(body), headers: { 'Content-Type': 'application/json', ...headers } };
    return (await this.open(path, how)).json();
  }

  /**
   * A response that is known to be good, for those who read it piece by piece.
   * @param {RequestInit} [how]
   * @returns {Promise<Response>}
   */
  async open(path, how = {}) {
    const auth = this.#token ? { Authorization: `Bearer ${this.#token}` } : {};
    const request = { ...how, headers: { ...auth, ...how.headers }, cache: 'no-store', credentials: 'omit' };
    const response = await fetch(new URL(path, document.baseURI), request).catch((error) => {
      if (error.name === 'AbortError') throw error;
      throw unreachable();
    });
    if (response.ok) return response;
    if (response.status === 401) this.#refused();
    throw await explained(response);
  }
}

const unreachable = () => new ApiError(0, {
  kind: 'unreachable',
  message: 'haft does not answer',
  hint: 'Is it still running on that machine? The page goes on trying.',
});

async function explained(response) {
  const body = await response.json().catch(() => ({}));
  const error = body.error ?? { kind: 'internal', message: `the gateway answered ${response.status} ${response.statusText}` };
  return new ApiError(response.status, error, body);
}

function withQuery(path, query) {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== '');
  return given.length ? `${path}?${new URLSearchParams(given)}` : path;
}

/** A part of a path, whatever it holds. */
export const at = encodeURIComponent;
