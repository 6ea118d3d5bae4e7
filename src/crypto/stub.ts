// A stub is the line that replaces an event's line after the service has withheld the texts. The service signs the stub, and its leaf is
// the original line's, so all proofs of the log stay valid. All hashing of lines goes through this file.
import { base64urlnopad } from '@scure/base';
import { type ForumEvent, fromLine, toLine } from '../vocabulary/events.ts';
import { canonicalJson } from '../vocabulary/json.ts';
import { bodyHoldsText, hasTexts, textsIn, withoutTexts } from '../vocabulary/texts.ts';
import { fromHex, type Millis, toHex, toTimestamp } from '../vocabulary/values.ts';
import { WITHHELD_FORMS, type Withheld, type WithholdReason, withheldProblem } from '../vocabulary/withheld.ts';
import { thumbprintOf } from './jwk.ts';
import { decodeKey } from './key-directory.ts';
import { leafHash } from './merkle.ts';

const encoder = new TextEncoder();

/** The first line of the text that the service signs. */
const TITLE = 'Chamber Coordination Service withheld line';

const CLOSING_BRACE = 0x7d;
/** Lines that are not stubs end in `"}`, so one byte distinguishes them. */
const STUB_END = new RegExp(
  `,"withheld":\\{${Object.entries(WITHHELD_FORMS)
    .map(([name, { source }]) => `"${name}":"${source.slice(1, -1).replace(/^\((?!\?)/, '(?:')}"`)
    .join(',')
    .replace('0x[0-9a-f]{64}', '(0x[0-9a-f]{64})')}\\}\\}$`,
);
const STUB_END_CHARS_MAX = 512;
const latin1 = new TextDecoder('latin1');

/**
 * Returns the leaf of a trusted line, which this program wrote itself: for a stub, the stated leaf of the original. Untrusted lines must
 * go through StubReader or the auditor, which verify a stub's signature before they accept its leaf.
 */
export function storedLeaf(line: Uint8Array): Uint8Array {
  if (line.at(-2) !== CLOSING_BRACE) return leafHash(line);
  const [, leaf] = STUB_END.exec(latin1.decode(line.subarray(-STUB_END_CHARS_MAX))) ?? [];
  return leaf === undefined ? leafHash(line) : fromHex(leaf);
}

/** Returns the leaf of a line; throws InvalidStub if the line is a stub. */
export function lineLeaf(line: Uint8Array): Uint8Array {
  const isStub = line.at(-2) === CLOSING_BRACE && STUB_END.test(latin1.decode(line.subarray(-STUB_END_CHARS_MAX)));
  if (isStub) throw new InvalidStub('is a stub, which does not show its own leaf');
  return leafHash(line);
}

export interface WithholdingTerms {
  readonly at: Millis;
  readonly reason: WithholdReason;
  /** The logId. */
  readonly log: string;
  /** The receipts key in force. */
  readonly key: { readonly publicKey: Uint8Array; readonly sign: (message: Uint8Array) => Uint8Array };
}

/** The stub, or why there is none: `noTexts` if the line contains no texts, `isStub` if it is already a stub. */
export type Withholding = { readonly stub: string } | { readonly refused: 'noTexts' | 'isStub' };

/** Creates the stub of a canonical line of this log. */
export function withhold(line: string, { at, reason, log, key }: WithholdingTerms): Withholding {
  const event = fromLine(line);
  if (event.withheld !== undefined) return { refused: 'isStub' };
  if (textsIn(event.type, event.payload).length === 0) return { refused: 'noTexts' };
  const terms = {
    at: toTimestamp(at),
    key: base64urlnopad.encode(key.publicKey),
    keyid: thumbprintOf(key.publicKey),
    leaf: toHex(leafHash(encoder.encode(line))),
    log,
    reason,
  };
  const { request } = event;
  const without = {
    ...event,
    payload: withoutTexts(event.type, event.payload),
    request: request !== null && bodyHoldsText(event.type, request.body) ? null : request,
    withheld: terms,
  };
  const signature = base64urlnopad.encode(key.sign(messageOf(without)));
  return { stub: toLine({ ...without, withheld: { ...terms, signature } } as ForumEvent) };
}

/** The terms under which a copy of a log re-signs the original log's stubs. */
export type RestatingTerms = Pick<WithholdingTerms, 'at' | 'log' | 'key'>;

/** Signs an existing stub for this log. Uses `at` only with a different key; otherwise the stub keeps its original time. */
export function restate(stub: string, { at, log, key }: RestatingTerms): string {
  const { withheld, ...event } = fromLine(stub);
  if (withheld === undefined) throw new InvalidStub('is not a stub');
  const { signature: _, ...former } = withheld;
  const keyid = thumbprintOf(key.publicKey);
  const isSameKey = keyid === former.keyid;
  const signer = isSameKey ? {} : { at: toTimestamp(at), key: base64urlnopad.encode(key.publicKey), keyid };
  const terms = { ...former, ...signer, log };
  const signature = base64urlnopad.encode(key.sign(messageOf({ ...event, withheld: terms })));
  return toLine({ ...event, withheld: { ...terms, signature } } as ForumEvent);
}

/** Whether `stub` may permanently replace `line`: the leaves must be equal, and two stubs may differ only in `withheld`. */
export function mayReplace(line: Uint8Array, stub: Uint8Array): boolean {
  const [former, after] = [storedLeaf(line), storedLeaf(stub)].map(toHex);
  const isStub = line.at(-2) === CLOSING_BRACE;
  return former === after && (!isStub || withoutEnd(line) === withoutEnd(stub));
}

function withoutEnd(line: Uint8Array): string {
  return latin1.decode(line).replace(STUB_END, '');
}

/** Returns the signed text: the title, a line feed, and the canonical stub without the signature. */
function messageOf(unsigned: object): Uint8Array {
  return encoder.encode(`${TITLE}\n${canonicalJson(unsigned)}`);
}

/** A well-formed stub whose signature and signer have not been verified yet. */
export interface StubClaim {
  readonly withheld: Withheld;
  readonly leaf: Uint8Array;
  readonly publicKey: Uint8Array;
  readonly message: Uint8Array;
  /** 64 bytes. */
  readonly signature: Uint8Array;
}

/** The message completes "event N …". */
export class InvalidStub extends Error {
  override readonly name = 'InvalidStub';
}

/**
 * Parses `withheld` of an untrusted line that is otherwise canonical and of a known shape; returns undefined if there is none. Throws
 * InvalidStub if the type has no texts, a text is left in the line, or `withheld` is malformed.
 */
export function stubClaim(line: ForumEvent): StubClaim | undefined {
  if (line.withheld === undefined) return undefined;
  const { withheld, ...event } = line;
  const problem = withheldProblem(withheld) ?? textsProblem(event);
  if (problem !== undefined) throw new InvalidStub(problem);
  const { signature, ...terms } = withheld;
  const publicKey = decodeKey(withheld.key);
  if (publicKey === undefined) throw new InvalidStub('withheld has a key that must not be used');
  if (thumbprintOf(publicKey) !== withheld.keyid)
    throw new InvalidStub('withheld has a keyid that does not match its key');
  return {
    withheld,
    leaf: fromHex(withheld.leaf),
    publicKey,
    message: messageOf({ ...event, withheld: terms }),
    signature: base64urlnopad.decode(signature),
  };
}

function textsProblem({ type, payload, request }: Omit<ForumEvent, 'withheld'>): string | undefined {
  if (!hasTexts(type)) return `is a stub of type ${type}, which has no texts`;
  if (canonicalJson(withoutTexts(type, payload)) !== canonicalJson(payload))
    return `is a stub with a text left in its payload: ${textsIn(type, payload).join(', ') || 'a member that must be absent'}`;
  if (request !== null && bodyHoldsText(type, request.body)) return 'is a stub with a text left in its request';
  return undefined;
}

const ANOTHER_LEAF = 'it has a different leaf';

/** Returns why a line can't be the original of a stub; undefined if it can. Both must be canonical, and the stub well-formed. */
export function originalProblem(
  original: string,
  stub: ForumEvent & { readonly withheld: Withheld },
): string | undefined {
  const { withheld } = stub;
  if (toHex(leafHash(encoder.encode(original))) !== withheld.leaf) return ANOTHER_LEAF;
  const event = fromLine(original);
  if (event.withheld !== undefined) return 'it is a stub itself';
  if (textsIn(event.type, event.payload).length === 0) return 'it contains no text';
  const { request } = event;
  const due = {
    ...event,
    payload: withoutTexts(event.type, event.payload),
    request: request !== null && bodyHoldsText(event.type, request.body) ? null : request,
    withheld,
  };
  return toLine(due as ForumEvent) === toLine(stub) ? undefined : 'the stub differs from it in more than its texts';
}

type Stub = ForumEvent & { readonly withheld: Withheld };

/** Whether two stubs of one event differ in more than the time, reason, key and signature in `withheld`. */
export function contradicts(one: Stub, other: Stub): boolean {
  const { at, reason, key, keyid, signature } = other.withheld;
  return toLine({ ...one, withheld: { ...one.withheld, at, reason, key, keyid, signature } }) !== toLine(other);
}
