// Converts valibot schemas to JSON Schema (draft 2020-12, as in OpenAPI 3.1): the service publishes the schemas that it validates with.
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
  /** `int64` for integers: code generators for typed languages assume 32 bits otherwise. */
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

/** Returns a JSON Schema for each definition. A reference is `refPrefix` followed by the definition's name. */
export function toJsonSchemas(definitions: Definitions, refPrefix: string): Schemas {
  const schemas = toJsonSchemaDefs(definitions, {
    target: 'draft-2020-12',
    // Schemas of bodies transform only strings to strings, so the last schema of a pipe also describes the input.
    typeMode: 'output',
    overrideRef: ({ referenceId }) => refPrefix + referenceId,
    overrideSchema,
    overrideAction,
  });
  // The library's type has the keywords of every draft; the service's schemas use only those of Schema.
  return schemas as Schemas;
}

type Override<Name extends keyof ConversionConfig> = NonNullable<ConversionConfig[Name]>;

/**
 * Closes objects, because the validator rejects unknown members; the only custom schema is that of arbitrary JSON objects. Moves a default
 * to the description, because generators treat a member with `default` as always present. Makes a literal an `enum` with one value, because
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

/** Adds to `description` the checks that JSON Schema can't express. */
const overrideAction: Override<'overrideAction'> = ({ valibotAction, jsonSchema: given }) => {
  const { pattern } = given;
  const jsonSchema = pattern === undefined ? given : { ...given, pattern: withPlainSlashes(pattern) };
  if (valibotAction.type === 'integer') return { ...jsonSchema, type: 'integer', format: 'int64' };
  if (valibotAction.type === 'transform') return jsonSchema;
  // The only check on items is that they are unique.
  if (valibotAction.type === 'check_items') return { ...jsonSchema, uniqueItems: true };
  if (valibotAction.type !== 'check' && valibotAction.type !== 'regex') return undefined;
  const message = 'message' in valibotAction ? valibotAction.message : undefined;
  if (typeof message !== 'string') return jsonSchema;
  const { description } = jsonSchema;
  return { ...jsonSchema, description: description === undefined ? message : `${description}; ${message}` };
};

/** Unescapes the slashes that RegExp.source escapes, because generators that emit a regex literal escape them again. */
function withPlainSlashes(pattern: string): string {
  return pattern.replaceAll(/\\./g, (pair) => (pair === '\\/' ? '/' : pair));
}
