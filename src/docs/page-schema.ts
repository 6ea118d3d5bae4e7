// Schemas and examples for people: one row for each member, and JSON with its parts in colour.
import { breakable, escapeHtml, Html, html, inline } from './html.ts';
import type { Schema, Schemas } from './json-schema.ts';

export interface Row {
  readonly name: string;
  /** Stands after the name. */
  readonly note?: string;
  readonly schema: Schema;
  readonly isRequired: boolean;
}

/** A table of the members, nested ones by their path. */
export function schemaTable(schema: Schema, schemas: Schemas): Html {
  const rows = membersOf(schema, schemas, '');
  return rows.length === 0 ? html`<p>An object without members: <code>{}</code></p>` : table('member', rows, schemas);
}

export function table(title: string, rows: readonly Row[], schemas: Schemas): Html {
  return html`<table><thead><tr><th>${title}</th><th>type</th><th>rule</th></tr></thead><tbody>${rows.map(
    ({ name, note, schema, isRequired }) => html`<tr>
      <td><code>${breakable(name)}</code>${note === undefined ? '' : html` <i>${note}</i>`}</td>
      <td>${typeOf(schema, schemas)}${isRequired ? '' : html` <i>optional</i>`}</td>
      <td>${ruleOf(schema, schemas)}</td></tr>`,
  )}</tbody></table>`;
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
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.type === 'array') return `array of ${typeOf(schema.items ?? {}, schemas)}`;
  return schema.format === 'date-time' ? 'timestamp' : (schema.type ?? 'any');
}

/** The rules for a value beyond its type. */
function ruleOf(given: Schema, schemas: Schemas): Html {
  const own = resolve(given, schemas);
  const schema = { ...resolve(notNull(own), schemas), ...own };
  const rules = [
    schema.description,
    schema.enum?.map((value) => `\`${value}\``).join(' '),
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

const TOKEN = /(&quot;(?:[^&\\]|\\.|&(?!quot;))*&quot;)(:)?|\b(true|false|null)\b|(-?\b\d+(?:\.\d+)?\b)/g;

/** A value as indented JSON; text as it is. */
export function example(value: unknown): Html {
  if (typeof value === 'string') return html`<pre>${value}</pre>`;
  const text = escapeHtml(JSON.stringify(value, null, 2));
  const marked = text.replace(TOKEN, (token, quoted?: string, colon?: string) => {
    if (colon !== undefined) return `<b>${quoted}</b>:`;
    return quoted === undefined ? `<u>${token}</u>` : `<s>${token}</s>`;
  });
  return new Html(`<pre>${marked}</pre>`);
}
