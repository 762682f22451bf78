/**
 * What happens, as it happens: server-sent events over fetch, because EventSource cannot send the token in a
 * header. Reconnects with the id of the last event that was seen, waiting longer each time in vain.
 */

const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 30_000;
/* The gateway says something every 15 s; a connection that is silent for three times that is dead. */
const SILENCE_MS = 45_000;

/** @typedef {{id?: string, event: string, data: string}} Message */

/** Cuts a stream of text into messages, as the HTML standard says (without `retry`). */
export class MessageParser {
  #rest = '';
  #fields = { data: [] };

  /**
   * @returns {Message[]}
   */
  push(chunk) {
    const lines = (this.#rest + chunk).split(/\r\n|\n|\r(?!$)/);
    this.#rest = lines.pop();
    return lines.flatMap((line) => this.#line(line));
  }

  #line(line) {
    if (line === '') return this.#end();
    const [, name, value] = /^([^:]*):? ?(.*)$/s.exec(line);
    if (name === 'data') this.#fields.data.push(value);
    else if (name === 'event' || name === 'id') this.#fields[name] = value;
    return [];
  }

  #end() {
    const { id, event = 'message', data } = this.#fields;
    this.#fields = { data: [] };
    return data.length ? [{ id, event, data: data.join('\n') }] : [];
  }
}

/**
 * @typedef {{state: 'connecting'|'open'|'closed'} | {state: 'waiting', until: number}} Connection
 */

export class EventStream {
  #api;
  #hooks;
  #lastId = null;
  #failures = 0;
  #stop = new AbortController();
  #wake = () => {};

  /**
   * @param {import('./api.js').Api} api
   * @param {{event: (name: string, data: any) => void, state: (connection: Connection) => void}} hooks
   */
  constructor(api, hooks) {
    this.#api = api;
    this.#hooks = hooks;
  }

  /** Listens until stopped. */
  async run() {
    while (!this.#stop.signal.aborted) {
      this.#hooks.state({ state: 'connecting' });
      const error = await this.#listen().then(() => null, (reason) => reason);
      // A token that is refused does not get better by being shown again.
      if (this.#stop.signal.aborted || error?.status === 401 || error?.status === 403) break;
      await this.#wait();
    }
    this.#hooks.state({ state: 'closed' });
  }

  /** Tries again now rather than later. */
  retry() {
    this.#failures = 0;
    this.#wake();
  }

  stop() {
    this.#stop.abort();
    this.#wake();
  }

  async #listen() {
    const quiet = new AbortController();
    let timer;
    const heard = () => {
      clearTimeout(timer);
      timer = setTimeout(() => quiet.abort(), SILENCE_MS);
    };
    try {
      heard();
      const headers = { Accept: 'text/event-stream', ...(this.#lastId ? { 'Last-Event-ID': this.#lastId } : {}) };
      const signal = AbortSignal.any([quiet.signal, this.#stop.signal]);
      const response = await this.#api.open('v1/events', { headers, signal });
      this.#failures = 0;
      this.#hooks.state({ state: 'open' });
      await this.#read(response.body.pipeThrough(new TextDecoderStream()).getReader(), heard);
    } finally {
      clearTimeout(timer);
    }
  }

  async #read(reader, heard) {
    const parser = new MessageParser();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      heard();
      parser.push(value).forEach((message) => this.#deliver(message));
    }
  }

  #deliver({ id, event, data }) {
    if (id !== undefined) this.#lastId = id;
    let body;
    try {
      body = JSON.parse(data);
    } catch {
      // Something between us and the gateway mangled it: as good as missed.
      this.#hooks.event('missed', { count: 1 });
      return;
    }
    this.#hooks.event(event, body);
  }

  async #wait() {
    const limit = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** this.#failures);
    // Not all pages at once when the gateway comes back.
    const wait = limit * (0.75 + Math.random() / 4);
    this.#failures += 1;
    this.#hooks.state({ state: 'waiting', until: Date.now() + wait });
    await new Promise((resolve) => {
      const timer = setTimeout(resolve, wait);
      this.#wake = () => { clearTimeout(timer); resolve(); };
    });
  }
}
