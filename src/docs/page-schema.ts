// Renders schemas as tables with a row for each member, and examples as coloured JSON.
import { type Child, type Element, h } from '../html/element.ts';
import { breakable, inline, marked, preformatted } from '../html/markdown.ts';
import type { Schema, Schemas } from './json-schema.ts';

export interface Row {
  readonly name: string;
  /** Shown after the name. */
  readonly note?: string;
  readonly schema: Schema;
  readonly isRequired: boolean;
}

/** Names nested members by their path. */
export function schemaTable(schema: Schema, schemas: Schemas): Element {
  const rows = membersOf(schema, schemas, '');
  if (rows.length === 0) return h('p', {}, 'An object without members: ', h('code', {}, '{}'));
  return table('member', rows, schemas);
}

export function table(title: string, rows: readonly Row[], schemas: Schemas): Element {
  const body = rows.map(({ name, note, schema, isRequired }) =>
    h(
      'tr',
      {},
      h('td', {}, h('code', {}, breakable(name)), note !== undefined && [' ', h('i', {}, note)]),
      h('td', {}, typeOf(schema, schemas), !isRequired && [' ', h('i', {}, 'optional')]),
      h('td', {}, ruleOf(schema, schemas)),
    ),
  );
  return h('table', {}, headRow(title, 'type', 'rule'), h('tbody', {}, ...body));
}

export function headRow(...titles: readonly string[]): Element {
  return h('thead', {}, h('tr', {}, ...titles.map((title) => h('th', {}, title))));
}

function membersOf(given: Schema, schemas: Schemas, path: string): readonly Row[] {
  const { type, items = {}, properties = {}, required = [] } = resolve(given, schemas);
  if (type === 'array') return membersOf(items, schemas, `${path}[]`);
  return Object.entries(properties).flatMap(([member, schema]) => {
    const name = path === '' ? member : `${path}.${member}`;
    return [{ name, schema, isRequired: required.includes(member) }, ...membersOf(notNull(schema), schemas, name)];
  });
}

function resolve(schema: Schema, schemas: Schemas): Schema {
  const name = schema.$ref?.split('/').at(-1);
  return name === undefined ? schema : { ...schemas[name], ...schema };
}

function notNull(schema: Schema): Schema {
  return schema.anyOf?.find(({ type }) => type !== 'null') ?? schema;
}

function typeOf(given: Schema, schemas: Schemas): string {
  const schema = resolve(given, schemas);
  if (schema.anyOf !== undefined) return schema.anyOf.map((option) => typeOf(option, schemas)).join(' or ');
  if (schema.enum?.length === 1) return JSON.stringify(schema.enum[0]);
  if (schema.type === 'array') return `array of ${typeOf(schema.items ?? {}, schemas)}`;
  return schema.format === 'date-time' ? 'timestamp' : (schema.type ?? 'any');
}

function ruleOf(given: Schema, schemas: Schemas): readonly Child[] {
  const own = resolve(given, schemas);
  const schema = { ...resolve(notNull(own), schemas), ...own };
  const rules = [
    schema.description,
    schema.enum !== undefined && schema.enum.length > 1
      ? schema.enum.map((value) => `\`${value}\``).join(' ')
      : undefined,
    range(schema.minimum, schema.maximum, ''),
    schema.pattern === undefined ? lengthOf(schema) : undefined,
    range(undefined, schema.maxItems, ' items'),
    schema.items?.maxLength === undefined ? undefined : `each ${lengthOf(schema.items)}`,
    schema.default === undefined ? undefined : `\`${JSON.stringify(schema.default)}\` when absent`,
  ];
  return inline(rules.filter((rule) => rule !== undefined).join('; '));
}

function lengthOf({ minLength, maxLength }: Schema): string | undefined {
  return range(minLength, maxLength, ' characters');
}

function range(min: number | undefined, max: number | undefined, unit: string): string | undefined {
  if (max === undefined || max === Number.MAX_SAFE_INTEGER)
    return min === undefined ? undefined : `at least ${min}${unit}`;
  return min === undefined ? `at most ${max}${unit}` : `${min} to ${max}${unit}`;
}

const JSON_TOKEN = /("(?:[^"\\]|\\.)*")(:)?|\b(?:true|false|null)\b|-?\b\d+(?:\.\d+)?\b/g;

/** Renders a value as indented JSON, and a string unchanged. */
export function example(value: unknown): Element {
  if (typeof value === 'string') return preformatted(value);
  const parts = marked(JSON.stringify(value, null, 2), JSON_TOKEN, ([token, quoted, colon = '']) => {
    if (quoted === undefined) return h('u', {}, token);
    return [h(colon === '' ? 's' : 'b', {}, quoted), colon];
  });
  return preformatted(...parts);
}
