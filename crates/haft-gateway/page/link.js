/**
 * A single-use link to one approval, as an address and as a QR code for a phone on the same network.
 */
import { at } from './api.js';
import { copyButton, fill, h } from './dom.js';
import { dialog } from './keys.js';
import { duration } from './text.js';

/**
 * @param {import('./api.js').Api} api
 */
export async function showLink(api, id) {
  const { url, expires_ms: expires, qr } = await api.post(`v1/approvals/${at(id)}/link`);
  // As an image, the drawing cannot run anything even if it were not ours.
  const src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(qr)}`;
  const image = h('img.qr', { src, alt: 'QR code of the link', width: 240, height: 240 });
  const left = h('p.quiet', '');
  const tick = () => {
    const ms = expires - Date.now();
    fill(left, ms > 0 ? `It works once, for ${duration(ms)} more, for this approval only.` : 'It has expired. Make another.');
    image.hidden = ms <= 0;
  };
  tick();
  const timer = setInterval(tick, 1000);
  const sheet = dialog('Open on a phone', h('div.link', image, h('div', h('p', 'Scan it with a phone on the same network, or open:'),
    h('p', h('code', { test: 'link-url' }, url), ' ', copyButton(url)), left)));
  sheet.addEventListener('close', () => clearInterval(timer));
}
