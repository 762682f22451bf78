/**
 * What came of a call: whether it worked, what it printed, who let it run, and how to take it back.
 */
import { at } from './api.js';
import { diffView, foldedView } from './diff.js';
import { block, button, callout, chip, codes, errorBox, h, part } from './dom.js';
import { duration, editableJson, plural } from './text.js';

const DECISIONS = { allow: 'ok', ask: 'info', deny: 'bad' };

/**
 * Who decided, and why.
 * @param {{decision: string, by: string, reason: string}} verdict
 */
export function verdictLine({ decision, by, reason }) {
  return h('p.verdict', chip(decision, DECISIONS[decision] ?? 'quiet'), ' ', reason, h('span.quiet', ` (by ${by})`));
}

export const whyPart = (verdict) => (verdict ? part('Why it was allowed or not', { test: 'why' }, verdictLine(verdict)) : null);

/** An outcome as the gateway gives it. */
export function outcomeView(outcome) {
  const labels = (outcome.labels ?? []).map((label) => chip(label, 'warn'));
  return h(
    'div.outcome',
    { test: 'outcome' },
    h('p.marks', outcome.success ? chip('done', 'ok') : chip('failed', 'bad'), h('span', duration(outcome.duration_ms)), labels),
    outcome.error ? errorBox(outcome.error) : null,
    (outcome.warnings ?? []).map((warning) => callout('warn', warning)),
    outcome.output ? block(outcome.output, 'Output') : null,
    outcome.truncated ? h('p.quiet', 'Cut. The whole output is kept in ', h('code', outcome.full_output ?? 'the store'), '.') : null,
    outcome.data == null ? null : h('details', h('summary', 'Result as data'), block(editableJson(outcome.data), 'Result as data')),
    whyPart(outcome.verdict),
  );
}

/** Stops a call that runs. */
export async function cancelCall({ api, notices }, id) {
  try {
    const { cancelled } = await api.post(`v1/calls/${at(id)}/cancel`);
    if (cancelled) notices.say('Cancelled', { text: 'It is being stopped.' });
    else notices.say('Nothing to cancel', { text: 'It has ended, or runs in another process.', tone: 'info' });
  } catch (error) {
    notices.fail('Not cancelled', error);
  }
}

/**
 * What a call changed, and a button that takes it back, or why that cannot be.
 * @param {{available: boolean, files: string[], reason?: string} | null | undefined} undo
 * @param {{app: {api: object, notices: object}, id: string, changes?: object, done?: () => void}} how
 */
export function undoPart(undo, { app, id, changes = {}, done }) {
  if (!undo) return null;
  const run = async () => {
    back.disabled = true;
    try {
      const answer = await app.api.post(`v1/calls/${at(id)}/undo`);
      const files = answer.undo?.files ?? undo.files;
      app.notices.say('Taken back', { text: `${plural(files.length, 'file')} as before: ${files.join(', ')}` });
      done?.();
    } catch (error) {
      app.notices.fail('Not taken back', error);
      back.disabled = false;
    }
  };
  const back = button('Undo', { test: 'undo', title: 'Puts back what was there before this call', run });
  const { gap, undone_by: undoneBy } = changes;
  const notes = [undo.reason, gap && `not covered: ${gap}`, undoneBy && `taken back by ${undoneBy}`].filter(Boolean);
  return part(
    'What it changed',
    { aside: undo.available ? back : chip('cannot be undone') },
    notes.map((note) => h('p.quiet', note)),
    changes.error ? errorBox(changes.error) : null,
    changes.diff ? diffView(changes.diff) : codes(undo.files),
    foldedView(changes.ranked, (path) => app.api.get(`v1/calls/${at(id)}/changes`, { path })),
  );
}
