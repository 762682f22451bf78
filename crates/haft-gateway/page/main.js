/**
 * The page: finds its access, builds the views, and carries keys, addresses and events to them.
 */
import { Activity } from './activity.js';
import { Api } from './api.js';
import { button, chip, errorBox, fill, h } from './dom.js';
import { EventStream } from './events.js';
import { Inbox } from './inbox.js';
import { listenToKeys, showKeys } from './keys.js';
import { Log } from './log.js';
import { Notices } from './notice.js';
import { Notifier } from './notify.js';
import { save } from './save.js';
import { findAccess, forgetAccess, keepAccess } from './session.js';
import { Settings } from './settings.js';
import { Single } from './single.js';
import { plural } from './text.js';
import { Tools } from './tools.js';
import { Work } from './work.js';

/* In the order of their keys. */
const VIEWS = { Inbox, Activity, Tools, Log, Work, Settings };
const NAMES = Object.keys(VIEWS).map((title) => title.toLowerCase());
const CONNECTION = { connecting: ['connecting', 'quiet'], open: ['live', 'ok'], waiting: ['offline', 'bad'], closed: ['closed', 'bad'] };

const spot = (id) => document.getElementById(id);

/** What the views may ask of the page. */
export class App {
  #views = {};
  #tabs = {};
  #current = 'inbox';
  #stream;
  #state = h('span.connection', { test: 'connection-state', role: 'status' });
  /* Whether the operator lets approvals be opened on a phone; known once the gateway has said so. */
  links = false;
  notices = new Notices(spot('notices'));
  notifier = new Notifier((id) => this.go('inbox', id));

  /** @param {import('./session.js').Access} access */
  constructor({ token }) {
    const unknown = { message: 'The gateway does not accept this token.', hint: 'It may be from an earlier start of haft.' };
    this.api = new Api(token, () => this.leave(unknown));
    this.#stream = new EventStream(this.api, {
      event: (name, data) => this.#event(name, data),
      state: (connection) => this.#connection(connection),
    });
  }

  start() {
    Object.entries(VIEWS).forEach(([title, View], index) => {
      const name = NAMES[index];
      this.#views[name] = new View(this);
      this.#tabs[name] = h('a', { href: `#/${name}`, test: `tab-${name}`, 'aria-keyshortcuts': index + 1 }, title);
    });
    spot('main').replaceChildren(...Object.values(this.#views).map((view) => view.root));
    spot('tabs').replaceChildren(...Object.values(this.#tabs));
    spot('tabs').hidden = false;
    this.waiting(0);
    fill(spot('corner'), this.notifier.offer(), this.#state, button('Keys', { kind: 'quiet', key: '?', run: showKeys }));
    addEventListener('hashchange', () => this.#route());
    addEventListener('online', () => this.#stream.retry());
    listenToKeys((key) => this.#key(key));
    this.#route();
    this.#refresh();
    this.#stream.run();
  }

  /** Shows something in a view; `replace` leaves no step in the history. */
  go(view, id, { replace = false } = {}) {
    const address = `#/${view}${id ? `/${encodeURIComponent(id)}` : ''}`;
    if (replace || location.hash === address) history.replaceState(null, '', address);
    else history.pushState(null, '', address);
    this.#route();
  }

  #route() {
    const [, name, id] = /^#\/([a-z]+)(?:\/(.+))?$/.exec(location.hash) ?? [];
    if (this.#views[name]) this.#current = name;
    for (const each of NAMES) {
      const shown = each === this.#current;
      this.#views[each].root.hidden = !shown;
      if (shown) this.#tabs[each].setAttribute('aria-current', 'page');
      else this.#tabs[each].removeAttribute('aria-current');
    }
    this.#views[this.#current].route(name === this.#current && id ? decodeURIComponent(id) : null);
  }

  /** Everything anew: at the start, and whenever events may have been missed. */
  async #refresh() {
    for (const view of Object.values(this.#views)) view.refresh();
    // If this fails, the connection's state says it.
    const { root, links } = await this.api.get('v1/status').catch(() => ({ root: '', links: this.links }));
    this.links = links;
    if (root) fill(spot('project'), h('span', { title: root }, root.split('/').slice(-2).join('/')));
  }

  #event(name, data) {
    if (name === 'missed') this.#refresh();
    if (name === 'approval') this.notifier.waiting(data);
    if (name === 'decided') this.notifier.decided(data.call_id);
    if (name === 'attachment') this.#sent(data);
    for (const view of Object.values(this.#views)) view.event(name, data);
  }

  /** A call gives the person a file. It stays until they have saved or dismissed it. */
  #sent({ name, mime_type: type, bytes, url }) {
    const run = () => save(this.api, url.slice(1), name).catch((error) => this.notices.fail('Not saved', error));
    this.notices.say(`${name} was sent to you`, { text: `${type}, ${plural(bytes, 'byte')}`, tone: 'warn', actions: [{ label: 'Save', run }] });
  }

  #connection({ state, until }) {
    this.#state.dataset.state = state;
    fill(this.#state, chip(...CONNECTION[state]));
    const banner = spot('banner');
    if (state === 'waiting') {
      const seconds = Math.max(1, Math.round((until - Date.now()) / 1000));
      const again = button('Try now', { kind: 'quiet', run: () => this.#stream.retry() });
      fill(banner, `haft does not answer. What you see may be old. Trying again in ${seconds} s.`, again);
    }
    // While the next try is under way it stays as it was, so that it does not flicker.
    if (state !== 'connecting') banner.hidden = state !== 'waiting';
    if (state === 'open') this.#refresh();
  }

  /** @param {number} count how many wait for a person */
  waiting(count) {
    this.notifier.badge(count);
    // Its place is kept while there is none, so that the other tabs stand still.
    fill(this.#tabs.inbox, 'Inbox', h(count ? 'span.count' : 'span.count.none', count));
    this.#tabs.inbox.setAttribute('aria-label', `Inbox, ${count} waiting`);
  }

  #key(key) {
    const view = this.#views[this.#current];
    const tab = NAMES[Number(key) - 1];
    if (tab) this.go(tab);
    else if (key === '?') showKeys();
    else if (key === '/') view.search?.focus();
    else if (key === 'Escape') view.escape();
    // Enter on something that can be pressed presses it.
    else if (key === 'Enter' && document.activeElement?.matches('a, button:not(.row[aria-current]), summary')) return false;
    else if (Object.hasOwn(view.keys, key)) view.keys[key]();
    else return false;
    return true;
  }

  /** Forgets the token and asks for one. */
  leave(problem = null) {
    this.#stream.stop();
    showGate(problem);
  }
}

/** A page that may show one approval and nothing else. */
function startSingle({ token, only }) {
  const over = { message: 'This link is used up or has expired.', hint: 'Make a new one where the inbox is open.' };
  const single = new Single(only, { api: new Api(token, () => showGate(over)), notices: new Notices(spot('notices')) });
  spot('main').replaceChildren(single.root);
  fill(spot('project'), 'one approval');
  listenToKeys((key) => {
    const act = single.keys[key];
    act?.();
    return act !== undefined;
  });
}

/** @param {{message: string, hint?: string} | null} problem */
function showGate(problem) {
  forgetAccess();
  const field = h('input', { type: 'password', id: 'token', test: 'token-field', autocomplete: 'off', required: true });
  const enter = (event) => {
    event.preventDefault();
    keepAccess({ token: field.value.trim() });
    // From the start: nothing of the access before is left in any view.
    location.reload();
  };
  spot('main').replaceChildren(h(
    'form.gate',
    { on: { submit: enter } },
    h('h1', 'Token needed'),
    h('p', 'This page needs the token of the gateway. ', h('code', 'haft serve'), ' prints an address that has it.'),
    problem ? errorBox(problem) : null,
    h('label', { for: 'token' }, 'Token'),
    field,
    h('button.button.primary', { type: 'submit' }, 'Open'),
  ));
  for (const id of ['tabs', 'banner', 'corner']) spot(id).hidden = true;
  document.title = 'haft';
  field.focus();
}

async function start() {
  try {
    const access = await findAccess(new Api(null, () => {}));
    if (!access) showGate(null);
    else if (access.only) startSingle(access);
    else new App(access).start();
  } catch (error) {
    showGate(error);
  }
}

start();
