// Valibot schemas as JSON Schema (draft 2020-12, the dialect of OpenAPI 3.1): the published schemas are the ones that validate.
import { type ConversionConfig, toJsonSchemaDefs } from '@valibot/to-json-schema';
import type * as v from 'valibot';

/** The keywords that the service's schemas use. */
export interface Schema {
  readonly $ref?: string;
  readonly type?: string;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean;
  readonly description?: string;
  /** Integers have int64: typed languages would take one without a format for 32 bits. */
  readonly format?: string;
  readonly default?: unknown;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly maxItems?: number;
  readonly uniqueItems?: boolean;
  readonly pattern?: string;
  readonly discriminator?: { readonly propertyName: string; readonly mapping?: Readonly<Record<string, string>> };
  readonly contentMediaType?: string;
  readonly contentSchema?: Schema;
}

export type Schemas = Readonly<Record<string, Schema>>;

export type Definitions = Readonly<Record<string, v.GenericSchema>>;

/** One JSON Schema for each definition; where one is used within another it is a reference that begins with `refPrefix`. */
export function toJsonSchemas(definitions: Definitions, refPrefix: string): Schemas {
  const schemas = toJsonSchemaDefs(definitions, {
    target: 'draft-2020-12',
    // All transformations of bodies turn text into text, so the last schema of a pipe describes its input too.
    typeMode: 'output',
    overrideRef: ({ referenceId }) => refPrefix + referenceId,
    overrideSchema,
    overrideAction,
  });
  // The library types every keyword of every draft; ours use those of Schema.
  return schemas as Schemas;
}

type Override<Name extends keyof ConversionConfig> = NonNullable<ConversionConfig[Name]>;

/**
 * Objects are closed, as in the validation; arbitrary JSON objects are the one custom schema. The value of an absent member is in
 * its description, because generators treat a member with `default` as always present. One value is an `enum` of one, because
 * generators take no `const` for what discriminates a union.
 */
const overrideSchema: Override<'overrideSchema'> = ({ valibotSchema, jsonSchema }) => {
  if (jsonSchema.default !== undefined) {
    const { default: absent, description, ...schema } = jsonSchema;
    const note = `\`${JSON.stringify(absent)}\` when absent`;
    return { ...schema, description: description === undefined ? note : `${description}; ${note}` };
  }
  if (valibotSchema.type === 'object') return { ...jsonSchema, additionalProperties: false };
  const { const: value, ...schema } = jsonSchema;
  if (typeof value === 'string') return { type: 'string', ...schema, enum: [value] };
  if (typeof value === 'boolean') return { type: 'boolean', ...schema, enum: [value] };
  return valibotSchema.type === 'custom' ? { type: 'object', additionalProperties: true } : undefined;
};

/** A check that JSON Schema cannot express becomes the description. */
const overrideAction: Override<'overrideAction'> = ({ valibotAction, jsonSchema: given }) => {
  const { pattern } = given;
  const jsonSchema = pattern === undefined ? given : { ...given, pattern: withPlainSlashes(pattern) };
  if (valibotAction.type === 'integer') return { ...jsonSchema, type: 'integer', format: 'int64' };
  if (valibotAction.type === 'transform') return jsonSchema;
  // The one check of items is that none is there twice.
  if (valibotAction.type === 'check_items') return { ...jsonSchema, uniqueItems: true };
  if (valibotAction.type !== 'check' && valibotAction.type !== 'regex') return undefined;
  const message = 'message' in valibotAction ? valibotAction.message : undefined;
  if (typeof message !== 'string') return jsonSchema;
  const rule = message.replace(/^must be /, '');
  const { description } = jsonSchema;
  return { ...jsonSchema, description: description === undefined ? rule : `${description}; ${rule}` };
};

/** RegExp.source escapes slashes, which generators that write a literal escape once more. Outside a literal a slash needs no escape. */
function withPlainSlashes(pattern: string): string {
  return pattern.replaceAll(/\\./g, (pair) => (pair === '\\/' ? '/' : pair));
}
