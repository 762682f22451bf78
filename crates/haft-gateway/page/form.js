/**
 * A form made from a JSON Schema: a field for each property of the kinds that people fill in, JSON for the rest.
 * It leaves out what was left empty and checks only what a field can; the gateway checks all of it.
 */
import { fill, h } from './dom.js';

/** Something in a field that cannot be read. */
export class FieldError extends Error {}

/** What each kind of field shows and how it is read: undefined is left out. */
const KINDS = { choice, check, number, text, lines, json };

function kindOf(schema) {
  const type = [schema.type].flat().find((each) => each !== 'null');
  if (schema.enum) return 'choice';
  if (type === 'boolean') return 'check';
  if (type === 'integer' || type === 'number') return 'number';
  if (type === 'string') return 'text';
  return type === 'array' && schema.items?.type === 'string' ? 'lines' : 'json';
}

/** @param {object} schema of an object */
export class SchemaForm {
  #fields;

  constructor(schema) {
    const required = new Set(schema.required ?? []);
    this.#fields = Object.entries(schema.properties ?? {}).map(([name, part]) => new Field(name, part, required.has(name)));
    const none = this.#fields.length ? null : h('p.quiet', 'It takes no arguments.');
    this.root = h('div.form-fields', none, this.#fields.map((field) => field.root));
  }

  /** The arguments. Throws a FieldError, which its field shows. */
  read() {
    this.#fields.forEach((field) => field.say(null));
    return Object.fromEntries(this.#fields.map((field) => [field.name, field.read()]).filter(([, value]) => value !== undefined));
  }

  /** Shows a violation where it belongs. */
  complain(pointer, problem) {
    const name = pointer.split('/')[1]?.replaceAll('~1', '/').replaceAll('~0', '~');
    this.#fields.find((field) => field.name === name)?.say(problem);
  }
}

class Field {
  static #count = 0;
  #read;
  #input;
  #problem;

  constructor(name, schema, required) {
    const { input, read } = KINDS[kindOf(schema)](schema, required);
    Field.#count += 1;
    input.id = `field-${Field.#count}`;
    input.dataset.name = name;
    input.addEventListener('input', () => this.say(null));
    this.name = name;
    this.#read = read;
    this.#input = input;
    this.#problem = h('p.problem', { 'aria-live': 'polite' });
    const mark = required ? h('span.required', ' required') : null;
    const label = h('label', { for: input.id }, h('code', name), mark, h('span.quiet', ` ${bounds(schema)}`));
    const description = schema.description ? h('p.hint', schema.description) : null;
    this.root = h(`div.form-field${input.type === 'checkbox' ? '.inline' : ''}`, label, input, description, this.#problem);
  }

  read() {
    try {
      return this.#read();
    } catch (error) {
      this.say(error.message);
      this.#input.focus();
      throw error;
    }
  }

  /** @param {string | null} problem */
  say(problem) {
    fill(this.#problem, problem);
    this.#input.setAttribute('aria-invalid', String(problem !== null));
  }
}

function bounds({ type, minimum, maximum, default: preset }) {
  const range = minimum !== undefined || maximum !== undefined ? `${minimum ?? '…'} to ${maximum ?? '…'}` : null;
  const unless = preset === undefined ? null : `default ${JSON.stringify(preset)}`;
  return [[type].flat().filter(Boolean).join(' or '), range, unless].filter(Boolean).join(', ');
}

function choice(schema, required) {
  // By position, because values need not be text.
  const options = schema.enum.map((value, index) => h('option', { value: String(index) }, String(value)));
  const input = h('select', required ? null : h('option', { value: '' }, '(left out)'), options);
  return { input, read: () => (input.value === '' ? undefined : schema.enum[Number(input.value)]) };
}

function check(schema, required) {
  const preset = schema.default === true;
  const input = h('input', { type: 'checkbox', checked: preset });
  return { input, read: () => (input.checked === preset && !required ? undefined : input.checked) };
}

function number(schema, required) {
  const step = [schema.type].flat().includes('integer') ? 1 : 'any';
  const input = h('input', { type: 'number', min: schema.minimum, max: schema.maximum, step });
  const read = () => {
    if (input.validity.badInput) throw new FieldError('Not a number.');
    if (input.value === '' && required) throw new FieldError('It is required.');
    return input.value === '' ? undefined : Number(input.value);
  };
  return { input, read };
}

const area = (placeholder) => h('textarea', { rows: 1, placeholder, spellcheck: 'false', autocapitalize: 'off', autocomplete: 'off' });

function text(schema, required) {
  const input = area();
  return { input, read: () => (input.value === '' && !required ? undefined : input.value) };
}

function lines(schema, required) {
  const input = area('one a line');
  const read = () => {
    const given = input.value.split('\n').filter((line) => line !== '');
    return given.length || required ? given : undefined;
  };
  return { input, read };
}

function json(schema, required) {
  const input = area('JSON');
  const read = () => {
    if (input.value.trim() === '' && !required) return undefined;
    try {
      return JSON.parse(input.value);
    } catch (error) {
      throw new FieldError(`Not JSON: ${error.message}`);
    }
  };
  return { input, read };
}
