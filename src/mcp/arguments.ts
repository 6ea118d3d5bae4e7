// Converts the arguments that hosts and models send to the types in the tool's schema: null and empty optional arguments are absent, and
// values of other types may be strings. The schema rejects anything else.
import type * as v from 'valibot';

/** The values that hosts and models send for omitted optional arguments. */
const ABSENT: readonly unknown[] = [undefined, null, '', 'null'];
const DIGITS = /^\d{1,16}$/;

export function readArgument(schema: v.GenericSchema, sent: unknown): unknown {
  if (isOptional(schema)) return ABSENT.includes(sent) ? undefined : readArgument(schema.wrapped, sent);
  if (isObject(schema)) return readMembers(schema.entries, fromJson(sent));
  if (isArray(schema)) {
    const items = fromJson(sent);
    return Array.isArray(items) ? items.map((item) => readArgument(schema.item, item)) : items;
  }
  if (typeof sent !== 'string') return sent;
  if (schema.type === 'number') return DIGITS.test(sent) ? Number(sent) : sent;
  if (schema.type === 'boolean') return { true: true, false: false }[sent.toLowerCase()] ?? sent;
  if (isPicklist(schema)) return schema.options.find((option) => sameWord(option, sent)) ?? sent;
  return sent;
}

function readMembers(entries: Entries, sent: unknown): unknown {
  if (typeof sent !== 'object' || sent === null || Array.isArray(sent)) return sent;
  const members = Object.entries(sent).map(([name, value]) => {
    const entry = Object.hasOwn(entries, name) ? entries[name] : undefined;
    return [name, entry === undefined ? value : readArgument(entry, value)] as const;
  });
  return Object.fromEntries(members.filter(([, value]) => value !== undefined));
}

function fromJson(sent: unknown): unknown {
  if (typeof sent !== 'string') return sent;
  try {
    const read: unknown = JSON.parse(sent);
    return typeof read === 'object' && read !== null ? read : sent;
  } catch {
    return sent;
  }
}

function sameWord(option: unknown, sent: string): boolean {
  return typeof option === 'string' && option.toLowerCase() === sent.toLowerCase();
}

type Entries = Readonly<Record<string, v.GenericSchema | undefined>>;

// The schemas differ in `type`, but the library's generic type does not show it.
const OBJECTS: readonly string[] = ['object', 'strict_object', 'loose_object'];

function isOptional(schema: v.GenericSchema): schema is v.GenericSchema & { readonly wrapped: v.GenericSchema } {
  return schema.type === 'optional';
}

function isObject(schema: v.GenericSchema): schema is v.GenericSchema & { readonly entries: Entries } {
  return OBJECTS.includes(schema.type);
}

function isArray(schema: v.GenericSchema): schema is v.GenericSchema & { readonly item: v.GenericSchema } {
  return schema.type === 'array';
}

function isPicklist(schema: v.GenericSchema): schema is v.GenericSchema & { readonly options: readonly unknown[] } {
  return schema.type === 'picklist';
}
