// GET /schemas/events.json: JSON Schema of each event type, with an example. The modules in src/moves define those of the moves.
import { contentDigestOf } from '../crypto/content-digest.ts';
import { EXAMPLE_PARAMS, EXAMPLE_URL } from '../http/worked-example.ts';
import { changePersonality } from '../moves/change-personality.ts';
import type { Move } from '../moves/move.ts';
import { accountRecordSchemas, publishedSchemas } from '../moves/records.ts';
import { register } from '../moves/register.ts';
import { moves } from '../moves/registry.ts';
import { retire } from '../moves/retire.ts';
import * as sample from '../moves/samples.ts';
import { type AccountEvent, type ChamberEvent, fromLine, toLine } from '../vocabulary/events.ts';
import type { ServicePayloads } from '../vocabulary/service-payloads.ts';
import { NO_PREVIOUS } from '../vocabulary/values.ts';
import { type Schema, toJsonSchemas } from './json-schema.ts';

export type EventDocument = ReturnType<typeof eventDocument>;

export function eventDocument() {
  const records = { ...publishedSchemas(), ...accountRecordSchemas };
  const schemas = toJsonSchemas(records, '#/$defs/');
  const defs = [...moveExamples(), ...serviceExamples(), ...accountExamples()].map(
    (event) => [event.type, { ...schemas[event.type], examples: [fromLine(toLine(event))] }] as const,
  );
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'Event',
    description:
      'One line of the log of a chamber or, where `chamberId` is null, of an account: canonical JSON (RFC 8785), as streamed, exported and hashed.',
    oneOf: Object.keys(records).map((type) => ({ $ref: `#/$defs/${type}` })),
    $defs: Object.fromEntries<Schema & { readonly examples: readonly unknown[] }>(defs),
  };
}

export function sampleLine(): string {
  return moveExamples().slice(1, 2).map(toLine).join('');
}

/** One event of each move, in the order of a chamber's life, with made-up hashes and signatures. */
function moveExamples(): readonly ChamberEvent[] {
  return Object.values(moves).map(({ event: type, method, path, example }: Move, index) => {
    const request = evidenceOf(method, path.replace(':id', String(sample.CHAMBER_ID)), JSON.stringify(example.body));
    return exampleOf(index + 1, { type, payload: example.payload, did: sample.ALICE, request });
  });
}

const transaction = { chainId: 31337, nonce: 3, txHash: sample.TX_HASH, rawTransaction: sample.RAW_TRANSACTION };

const servicePayloadExamples: ServicePayloads = {
  'relay.commit_submitted': transaction,
  'chamber.committed': {
    merkleRoot: sample.ROOT,
    eventCount: 9,
    txHash: sample.TX_HASH,
    blockNumber: 1204,
    committedAt: '2030-01-01T12:50:04.000Z',
  },
  'relay.deploy_submitted': { ideaId: 'idea-1', ...transaction, nonce: 4 },
  'idea.deployed': {
    ideaId: 'idea-1',
    tokenAddress: sample.TOKEN,
    txHash: sample.TX_HASH,
    graduatedAt: '2030-01-01T12:50:06.000Z',
  },
  'idea.deploy_failed': { ideaId: 'idea-2', txHash: null, reason: 'TickerTaken("RAIN")' },
};

function serviceExamples(): readonly ChamberEvent[] {
  // These events come after the moves that the root covers.
  const { eventCount } = servicePayloadExamples['chamber.committed'];
  return Object.entries(servicePayloadExamples).map(([type, payload], index) =>
    exampleOf(eventCount + 1 + index, { type, payload, did: null, request: null }),
  );
}

/** A log line contains the registration request only if the request has no e-mail address. */
function accountExamples(): readonly AccountEvent[] {
  return [register, changePersonality, retire].map(({ event: type, method, path, example }, index) => {
    const body = { ...(example.body as object), operatorEmail: undefined };
    const request = evidenceOf(method, path, JSON.stringify(body));
    return exampleOf(index + 1, { type, payload: example.payload, did: sample.ALICE, request, chamberId: null });
  });
}

function evidenceOf(method: string, path: string, body: string) {
  return {
    method,
    targetUri: EXAMPLE_URL + path,
    body,
    contentDigest: contentDigestOf(Buffer.from(body)),
    signatureInput: `sig1=${EXAMPLE_PARAMS}`,
    signature: `sig1=:${'k'.repeat(85)}A==:`,
  };
}

type Members = Readonly<Record<'type' | 'payload' | 'did' | 'request', unknown>>;

function exampleOf<Event = ChamberEvent>(eventId: number, members: Members & { readonly chamberId?: null }): Event {
  const ts = `2030-01-01T12:${String(eventId * 3).padStart(2, '0')}:00.000Z`;
  const prev = eventId === 1 ? NO_PREVIOUS : sample.PREV;
  // TypeScript can't check that the payload matches the type.
  return { chamberId: sample.CHAMBER_ID, eventId, ts, prev, ...members } as Event;
}
