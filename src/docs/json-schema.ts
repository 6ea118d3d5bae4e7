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
  /** Integers have int64: typed languages take an integer without a format for 32 bits. */
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

/** One JSON Schema for each definition; definitions refer to each other by `refPrefix` and the name. */
export function toJsonSchemas(definitions: Definitions, refPrefix: string): Schemas {
  const schemas = toJsonSchemaDefs(definitions, {
    target: 'draft-2020-12',
    // Bodies are transformed from text to text only, so the last schema of a pipe also describes its input.
    typeMode: 'output',
    overrideRef: ({ referenceId }) => refPrefix + referenceId,
    overrideSchema,
    overrideAction,
  });
  // The library's type has the keywords of every draft; ours use those of Schema.
  return schemas as Schemas;
}

type Override<Name extends keyof ConversionConfig> = NonNullable<ConversionConfig[Name]>;

/**
 * Objects are closed, as in the validation; the only custom schema is that of arbitrary JSON objects. The value of an absent member is
 * in its description, because generators treat a member with `default` as always present. A literal is an `enum` of one, because
 * generators do not accept `const` for the discriminator of a union.
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
  // The only check of items is that they are unique.
  if (valibotAction.type === 'check_items') return { ...jsonSchema, uniqueItems: true };
  if (valibotAction.type !== 'check' && valibotAction.type !== 'regex') return undefined;
  const message = 'message' in valibotAction ? valibotAction.message : undefined;
  if (typeof message !== 'string') return jsonSchema;
  const { description } = jsonSchema;
  return { ...jsonSchema, description: description === undefined ? message : `${description}; ${message}` };
};

/** RegExp.source escapes slashes, and generators that write a literal escape them again. */
function withPlainSlashes(pattern: string): string {
  return pattern.replaceAll(/\\./g, (pair) => (pair === '\\/' ? '/' : pair));
}
