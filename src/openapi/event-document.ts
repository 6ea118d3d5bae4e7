// GET /schemas/events.json: what a line of a chamber's log may be, as JSON Schema with an example of each type.
import type { ChamberEvent } from '../vocabulary/events.ts';
import { eventExamples } from './event-examples.ts';
import { eventSchemas } from './event-schemas.ts';
import { type Schema, toJsonSchemas } from './json-schema.ts';

type EventType = keyof typeof eventSchemas;

export interface EventDocument {
  readonly $schema: string;
  readonly title: string;
  readonly description: string;
  readonly oneOf: readonly { readonly $ref: string }[];
  /** By type, each with an example. */
  readonly $defs: Readonly<Record<string, Schema & { readonly examples: readonly ChamberEvent[] }>>;
}

/** A schema that fits exactly the lines that a stream, a page or an export of a chamber holds. */
export function eventDocument(): EventDocument {
  const schemas = toJsonSchemas(eventSchemas, '#/$defs/');
  const types = Object.keys(schemas) as EventType[];
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'Event of a chamber',
    description: 'One line of a chamber’s log: canonical JSON (RFC 8785), as streamed, exported and hashed.',
    oneOf: types.map((type) => ({ $ref: `#/$defs/${type}` })),
    $defs: Object.fromEntries(types.map((type) => [type, { ...schemas[type], examples: [eventExamples[type]] }])),
  };
}
