// The event record as the README publishes it, written down a second time: exactly these members, nothing else.
import * as v from 'valibot';
import type { ChamberEvent } from '../vocabulary/events.ts';
import { DEADLINES, toTimestamp } from '../vocabulary/values.ts';
import { isWalletAddress } from '../vocabulary/wallet-address.ts';

const positive = v.pipe(v.number(), v.safeInteger(), v.minValue(1));
const natural = v.pipe(v.number(), v.safeInteger(), v.minValue(0));
const hash = v.pipe(v.string(), v.regex(/^0x[0-9a-f]{64}$/, 'must be 0x and 64 lower-case hex digits'));
const hex = v.pipe(v.string(), v.regex(/^0x([0-9a-fA-F]{2})+$/, 'must be 0x-prefixed hex'));
const address = v.pipe(v.string(), v.check(isWalletAddress, 'must be an EVM address with a right checksum'));
const timestamp = v.pipe(v.string(), v.check(isTimestamp, 'must be ISO 8601 in UTC with milliseconds'));
const object = v.custom<object>(isObject, 'must be an object');

function isTimestamp(text: string): boolean {
  const millis = Date.parse(text);
  return Number.isFinite(millis) && toTimestamp(millis) === text;
}

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const transaction = { chainId: positive, nonce: natural, txHash: hash, rawTransaction: hex };

const MOVES = {
  'chamber.created': {
    name: v.string(),
    deadlines: v.strictObject(v.entriesFromList(DEADLINES, timestamp)),
    minBackersForGraduation: positive,
    turnSeconds: v.nullable(positive),
  },
  'chamber.joined': { turnOrder: natural },
  'chamber.proposed': {
    ideaId: v.string(),
    slot: positive,
    name: v.string(),
    ticker: v.string(),
    description: v.string(),
    creatorWallet: address,
  },
  'chamber.debated': { ideaId: v.nullable(v.string()), comment: v.string(), refinement: v.nullable(object) },
  'chamber.passed': { nextTurnAgent: v.string() },
  'allocation.committed': { commitment: hex },
  'allocation.revealed': { allocations: v.array(v.strictObject({ ideaId: v.string(), bps: natural })), salt: hex },
} as const;

const SERVICE = {
  'relay.commit_submitted': transaction,
  'chamber.committed': {
    merkleRoot: hash,
    eventCount: positive,
    txHash: hash,
    blockNumber: natural,
    committedAt: timestamp,
  },
  'relay.deploy_submitted': { ...transaction, ideaId: v.string() },
  'idea.deployed': { ideaId: v.string(), tokenAddress: address, txHash: hash, graduatedAt: timestamp },
  'idea.deploy_failed': { ideaId: v.string(), txHash: v.nullable(hash), reason: v.string() },
} as const;

const evidence = v.strictObject({
  method: v.string(),
  targetUri: v.string(),
  body: v.string(),
  contentDigest: v.string(),
  signatureInput: v.string(),
  signature: v.string(),
});

const COMMON = { eventId: positive, chamberId: positive, ts: timestamp, prev: hash };
const SIGNED = { ...COMMON, did: v.string(), request: v.nullable(evidence) };
const UNSIGNED = { ...COMMON, did: v.null(), request: v.null() };

const schemas = new Map<string, v.GenericSchema>([
  ...Object.entries(MOVES).map(([type, payload]) => entry(type, SIGNED, payload)),
  ...Object.entries(SERVICE).map(([type, payload]) => entry(type, UNSIGNED, payload)),
]);

function entry(type: string, common: v.ObjectEntries, payload: v.ObjectEntries): [string, v.GenericSchema] {
  return [type, v.strictObject({ ...common, type: v.literal(type), payload: v.strictObject(payload) })];
}

export type RecordVerdict = { readonly event: ChamberEvent } | { readonly problem: string };

/** The value as an event of a chamber, or what is wrong with it. */
export function toChamberEvent(value: unknown): RecordVerdict {
  if (!isObject(value)) return { problem: 'is no JSON object' };
  const { type } = value as { readonly type?: unknown };
  const schema = schemas.get(String(type));
  if (schema === undefined) return { problem: problemOfType(type) };
  const result = v.safeParse(schema, value, { abortPipeEarly: true });
  // The schema is made of the same members as the type, which the type system cannot see through a table.
  return result.success ? { event: result.output as ChamberEvent } : { problem: describe(result.issues[0]) };
}

function problemOfType(type: unknown): string {
  if (typeof type !== 'string') return 'has no type: it is no event record';
  if (type.startsWith('agent.')) return `is of type ${type}: an agent’s account, not a chamber`;
  return `is of the unknown type ${JSON.stringify(type.slice(0, 60))}`;
}

function describe(issue: v.BaseIssue<unknown>): string {
  const path = (issue.path ?? []).map(({ key }) => String(key)).join('.');
  if (issue.received === 'undefined') return `lacks ${path}`;
  if (issue.expected === 'never') return `has the unknown member ${path}`;
  const problem = issue.kind === 'schema' ? `must be ${issue.expected}` : issue.message;
  return `has a wrong ${path}: ${problem}`;
}
