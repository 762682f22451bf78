/**
 * The picture of a run: what waits for what, from left to right, and where each step stands. A graph that is too
 * large to be read is drawn by layers, so that one still sees how far it is.
 */
import { drawn } from './dom.js';

/* Beyond this many steps nobody reads names. */
const STEPS_MAX = 300;
const COLUMNS_MAX = 40;
const BOX = { width: 148, height: 40 };
const GAP = { x: 52, y: 14 };
const EDGE = 12;
const NAME_MAX = 18;

/** The tone of each state, here and wherever a step is spoken of. */
export const TONES = {
  running: 'info', nested: 'info', asking: 'warn', uncertain: 'warn', done: 'ok', failed: 'bad', cancelled: 'bad',
};

/* In this order they are counted. */
const COUNTED = ['done', 'running', 'nested', 'asking', 'uncertain', 'failed', 'skipped', 'ready', 'held', 'waiting'];

/**
 * How deep each step is: one more than the deepest that it waits for.
 * @param {number[][]} needs for each step, the numbers of those that it waits for
 * @returns {number[]}
 */
export function depths(needs) {
  const depth = needs.map(() => 0);
  const missing = needs.map((each) => each.length);
  const feeds = needs.map(() => []);
  needs.forEach((each, nr) => each.forEach((need) => feeds[need].push(nr)));
  const ready = missing.flatMap((count, nr) => (count ? [] : [nr]));
  for (let at = 0; at < ready.length; at += 1) {
    for (const next of feeds[ready[at]]) {
      depth[next] = Math.max(depth[next], depth[ready[at]] + 1);
      missing[next] -= 1;
      if (!missing[next]) ready.push(next);
    }
  }
  return depth;
}

/** The steps of each layer, those beside each other that hang on the same. */
function layers(needs) {
  const all = [];
  depths(needs).forEach((depth, nr) => { (all[depth] ??= []).push(nr); });
  const row = [];
  for (const layer of all) {
    const middle = (nr) => (needs[nr].length ? needs[nr].reduce((sum, need) => sum + row[need], 0) / needs[nr].length : nr);
    layer.sort((one, other) => middle(one) - middle(other) || one - other);
    layer.forEach((nr, at) => { row[nr] = at - (layer.length - 1) / 2; });
  }
  return all;
}

const counts = (states) => COUNTED.map((state) => [state, states.filter((each) => each === state).length]).filter(([, count]) => count);

const shortened = (text) => (text.length > NAME_MAX ? `${text.slice(0, NAME_MAX - 1)}…` : text);

export class Graph {
  #boxes = new Map();
  #bands = [];

  /**
   * @param {{id: string, state: string}[]} steps
   * @param {number[][]} needs
   */
  constructor(steps, needs) {
    const all = layers(needs);
    this.root = steps.length > STEPS_MAX ? this.#summary(steps, all) : this.#whole(steps, needs, all);
  }

  /** Shows where the steps stand now. */
  update(steps) {
    for (const { id, state } of steps) this.set(id, state);
    for (const band of this.#bands) band.draw(steps);
  }

  /** Shows where one of them stands. Nothing is said of one that is not drawn. */
  set(id, state) {
    const box = this.#boxes.get(id);
    if (!box || box.node.dataset.state === state) return;
    box.node.dataset.state = state;
    box.node.setAttribute('class', `step ${TONES[state] ?? 'quiet'}`);
    box.state.textContent = state;
    box.title.textContent = `${id}: ${state}`;
  }

  #whole(steps, needs, all) {
    const tallest = Math.max(...all.map((layer) => layer.length));
    const height = tallest * (BOX.height + GAP.y) - GAP.y + 2 * EDGE;
    const place = [];
    all.forEach((layer, depth) => layer.forEach((nr, at) => {
      const top = height / 2 + (at - layer.length / 2) * (BOX.height + GAP.y) + GAP.y / 2;
      place[nr] = { x: EDGE + depth * (BOX.width + GAP.x), y: top };
    }));
    const edges = needs.flatMap((each, nr) => each.map((need) => edge(place[need], place[nr])));
    const boxes = steps.map((step, nr) => this.#box(step, place[nr]));
    this.update(steps);
    return picture(all.length, height, `The graph of ${steps.length} steps; the list below says the same`, [...edges, ...boxes]);
  }

  #box({ id }, { x, y }) {
    const [title, state] = [drawn('title', {}), drawn('text.state', { x: x + 10, y: y + 32 })];
    const node = drawn(
      'g',
      { data: { test: 'graph-step', step: id, state: '' } },
      title,
      drawn('rect', { x, y, ...BOX, rx: 6 }),
      drawn('text', { x: x + 10, y: y + 17 }, shortened(id)),
      state,
    );
    this.#boxes.set(id, { node, state, title });
    return node;
  }

  /** Some layers together, where there are more than can be seen. */
  #summary(steps, all) {
    const wide = Math.ceil(all.length / COLUMNS_MAX);
    const columns = [];
    for (let from = 0; from < all.length; from += wide) columns.push({ from, to: Math.min(all.length, from + wide), numbers: all.slice(from, from + wide).flat() });
    const lines = COUNTED.length + 2;
    const height = lines * 16 + 2 * EDGE;
    const parts = columns.flatMap(({ from, to, numbers }, at) => {
      const x = EDGE + at * (BOX.width + GAP.x);
      const body = drawn('g', {});
      const name = to - from > 1 ? `layers ${from + 1} to ${to}` : `layer ${from + 1}`;
      const draw = (now) => {
        const states = numbers.map((nr) => now[nr]?.state);
        const rows = counts(states).map(([state, count], row) => drawn(`text.${TONES[state] ?? 'quiet'}`, { x: x + 10, y: EDGE + 54 + row * 16 }, `${count} ${state}`));
        body.replaceChildren(...rows);
      };
      this.#bands.push({ draw });
      draw(steps);
      const box = drawn(
        'g.band',
        { data: { test: 'graph-layer' } },
        drawn('rect', { x, y: EDGE, width: BOX.width, height: height - 2 * EDGE, rx: 6 }),
        drawn('text', { x: x + 10, y: EDGE + 18 }, name),
        drawn('text.state', { x: x + 10, y: EDGE + 34 }, `${numbers.length} steps`),
        body,
      );
      const middle = { y: height / 2 - BOX.height / 2 };
      return at ? [edge({ x: x - BOX.width - GAP.x, ...middle }, { x, ...middle }), box] : [box];
    });
    return picture(columns.length, height, `The ${steps.length} steps by layer`, parts);
  }
}

function edge(from, to) {
  const [x1, y1, x2, y2] = [from.x + BOX.width, from.y + BOX.height / 2, to.x, to.y + BOX.height / 2];
  const bend = Math.min(GAP.x, (x2 - x1) / 2);
  return drawn('path.edge', { d: `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}` });
}

function picture(columns, height, label, parts) {
  const width = columns * (BOX.width + GAP.x) - GAP.x + 2 * EDGE;
  return drawn('svg.graph', { viewBox: `0 0 ${width} ${height}`, width, height, role: 'img', 'aria-label': label }, parts);
}
