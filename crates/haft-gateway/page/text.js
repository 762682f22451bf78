/**
 * Words for the eye: makes text that others wrote (models, tools, files) safe to look at, and writes
 * times and durations for people. Nothing here touches the document.
 */

/*
 * Everything that acts on its surroundings or cannot be seen: controls, format characters (bidirectional
 * overrides, zero-width characters, tags), lone surrogates, line and paragraph separators, blank letters,
 * and the variation selectors in which text can be hidden. Newline and tab are handled by whoever lays
 * the text out.
 */
const HIDDEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0\u{e0100}-\u{e01ef}]/gu;

const codePoint = (char) => char.codePointAt(0).toString(16).toUpperCase().padStart(4, '0');

/** The text with what acts or hides made visible, such as ⟨U+202E⟩. Line breaks and tabs stay. */
export function visible(text) {
  return String(text).replace(HIDDEN, (char) => (char === '\n' || char === '\t' ? char : `⟨U+${codePoint(char)}⟩`));
}

/** The same on one line. */
export function oneLine(text) {
  return visible(text).replace(/\n/g, '↵').replace(/\t/g, ' ');
}

/**
 * JSON that can be edited without losing anything: what acts or hides is escaped as JSON itself does it.
 * @param {unknown} value
 */
export function editableJson(value) {
  const unit = (half) => `\\u${half.charCodeAt(0).toString(16).padStart(4, '0')}`;
  return JSON.stringify(value, null, 2).replace(HIDDEN, (char) => (char === '\n' ? char : char.split('').map(unit).join('')));
}

/** Where and why a text is no JSON object; null if it is one. */
export function jsonProblem(text) {
  try {
    const value = JSON.parse(text);
    const isObject = value !== null && typeof value === 'object' && !Array.isArray(value);
    return isObject ? null : 'Arguments are a JSON object: {"name": value, …}';
  } catch (error) {
    return `Not JSON: ${error.message}`;
  }
}

/** @param {number | null | undefined} ms */
export function duration(ms) {
  if (ms == null) return '';
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`;
  if (ms < 3_600_000) return `${Math.floor(ms / 60_000)} min ${Math.floor((ms % 60_000) / 1000)} s`;
  return `${Math.floor(ms / 3_600_000)} h ${Math.floor((ms % 3_600_000) / 60_000)} min`;
}

/**
 * How long ago, roughly.
 * @param {number} ms since the epoch
 */
export function ago(ms) {
  const seconds = Math.max(0, (Date.now() - ms) / 1000);
  if (seconds < 45) return 'just now';
  if (seconds < 3600) return `${Math.max(1, Math.round(seconds / 60))} min ago`;
  if (seconds < 86_400) return `${Math.round(seconds / 3600)} h ago`;
  return `${Math.round(seconds / 86_400)} d ago`;
}

/**
 * The time of day; with the date if that is not today.
 * @param {number} ms since the epoch
 */
export function clock(ms) {
  const then = new Date(ms);
  const time = then.toLocaleTimeString(undefined, { hour: '2-digit', minute: '2-digit', second: '2-digit' });
  const today = then.toDateString() === new Date().toDateString();
  return today ? time : `${then.toLocaleDateString(undefined, { month: 'short', day: 'numeric' })} ${time}`;
}

/**
 * @param {string} one the noun
 * @param {string} [many] its plural, where an s does not make it
 */
export function plural(count, one, many = `${one}s`) {
  return `${count.toLocaleString()} ${count === 1 ? one : many}`;
}

/** A preview without the name of the tool, where that stands beside it. */
export function bare(preview, tool) {
  const text = preview ?? '';
  return (text.startsWith(`${tool}: `) ? text.slice(tool.length + 2) : text) || tool;
}
