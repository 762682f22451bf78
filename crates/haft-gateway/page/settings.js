/**
 * The settings in force, to be looked at: they are changed in files, where they can be reviewed.
 */
import { blank, button, callout, chip, errorBox, fill, h, pairs, part } from './dom.js';
import { ago, clock } from './text.js';
import { leaves, tableView, valueView } from './value.js';

export class Settings {
  #app;
  #body = h('div.body', blank('Loading…'));
  #entered = false;

  constructor(app) {
    this.#app = app;
    this.root = h('section.settings', h('div.scroll', this.#pagePart(), this.#body));
    this.keys = {};
  }

  route() {
    this.#entered = true;
    this.refresh();
  }

  async refresh() {
    if (!this.#entered) return;
    const { api } = this.#app;
    try {
      const [status, config, { sessions }] = await Promise.all(['status', 'config', 'sessions'].map((name) => api.get(`v1/${name}`)));
      fill(this.#body, gatewayPart(status), confinementPart(config), configPart(config), sourcesPart(config), sessionsPart(sessions));
    } catch (error) {
      fill(this.#body, errorBox(error));
    }
  }

  #pagePart() {
    const leave = button('Forget the token', { test: 'forget', title: 'This tab needs the token again', run: () => this.#app.leave() });
    return part('This page', {}, pairs([['Notifications', this.#app.notifier.control()], ['Access', leave]]));
  }

  escape() {}

  event() {}
}

function gatewayPart({ version, root, links, servers = [] }) {
  return part('haft', {}, pairs([
    ['Version', version],
    ['Project', h('code', root)],
    ['Links for phones', links ? 'on' : 'off: the operator did not turn them on'],
    ['MCP servers', servers.length ? valueView(servers) : h('span.quiet', 'none are bridged')],
  ]));
}

function confinementPart({ confinement }) {
  const note = h('p.quiet', 'How the kernel holds programs that tools start.');
  return part('Confinement', { test: 'settings-confinement' }, note, valueView(confinement ?? {}));
}

function configPart({ config, origins }) {
  const row = ([name, value]) => [h('code', name), valueView(value), h('span.quiet', originOf(origins ?? {}, name))];
  const table = tableView(['setting', 'value', 'from'], leaves(config ?? {}).map(row));
  return part('Configuration in force', { test: 'settings-config' }, table);
}

/** Where a setting comes from: said for itself or for what it is a part of. */
function originOf(origins, name) {
  for (let path = name; path; path = path.split('.').slice(0, -1).join('.')) {
    const nested = path.split('.').reduce((value, key) => value?.[key], origins);
    const found = origins[path] ?? nested;
    if (typeof found === 'string' || Array.isArray(found)) return [found].flat().join(', ');
  }
  return '';
}

function sourcesPart({ sources = [], warnings = [] }) {
  return part('Files', {}, warnings.map((warning) => callout('warn', warning)), valueView(sources));
}

function sessionsPart(sessions = []) {
  const rows = sessions.map((each) => [h('code', each.id), clock(each.created_ms), ago(each.used_ms), chip(each.calls)]);
  return part('Sessions', {}, rows.length ? tableView(['session', 'since', 'last used', 'calls'], rows) : h('p.quiet', 'none'));
}
