// A stub: the line that replaces an event's line after the service has withheld its texts. It is signed by the service, and its leaf is
// that of the line that was, so nothing that was proved of the log changes. All hashing of lines goes through this file.
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
 * The leaf of a line of a log that this program itself wrote: of a stub, the leaf of the line that was. The lines of others go through
 * StubReader or the auditor, which believe a stub's leaf only once its signature is verified.
 */
export function storedLeaf(line: Uint8Array): Uint8Array {
  if (line.at(-2) !== CLOSING_BRACE) return leafHash(line);
  const [, leaf] = STUB_END.exec(latin1.decode(line.subarray(-STUB_END_CHARS_MAX))) ?? [];
  return leaf === undefined ? leafHash(line) : fromHex(leaf);
}

/** The leaf of a line that must not be a stub; throws InvalidStub for one. */
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

/** Either the stub, or why there is none: `noTexts` if the line holds none of the texts of its type, `isStub` if it is one. */
export type Withholding = { readonly stub: string } | { readonly refused: 'noTexts' | 'isStub' };

/** Makes the stub of a canonical line of this log. */
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

/** How a log states a stub that was signed for another one, of which it is a copy. */
export type RestatingTerms = Pick<WithholdingTerms, 'at' | 'log' | 'key'>;

/** Makes the same stub for this log. `at` counts only if the key is another one: a stub is as old as its text is gone. */
export function restate(stub: string, { at, log, key }: RestatingTerms): string {
  const { withheld, ...event } = fromLine(stub);
  if (withheld === undefined) throw new InvalidStub('is no stub');
  const { signature: _, ...former } = withheld;
  const keyid = thumbprintOf(key.publicKey);
  const isSameKey = keyid === former.keyid;
  const signer = isSameKey ? {} : { at: toTimestamp(at), key: base64urlnopad.encode(key.publicKey), keyid };
  const terms = { ...former, ...signer, log };
  const signature = base64urlnopad.encode(key.sign(messageOf({ ...event, withheld: terms })));
  return toLine({ ...event, withheld: { ...terms, signature } } as ForumEvent);
}

/** Whether a stored line may replace another for good: it has the same leaf, and if both are stubs, they differ in `withheld` alone. */
export function mayReplace(line: Uint8Array, stub: Uint8Array): boolean {
  const [former, after] = [storedLeaf(line), storedLeaf(stub)].map(toHex);
  const isStub = line.at(-2) === CLOSING_BRACE;
  return former === after && (!isStub || withoutEnd(line) === withoutEnd(stub));
}

function withoutEnd(line: Uint8Array): string {
  return latin1.decode(line).replace(STUB_END, '');
}

/** What the service signs: the title, a line feed, and the canonical stub without the signature. */
function messageOf(unsigned: object): Uint8Array {
  return encoder.encode(`${TITLE}\n${canonicalJson(unsigned)}`);
}

/** A stub whose form is right. Whether its signature verifies and its key is one of the service's is not known yet. */
export interface StubClaim {
  readonly withheld: Withheld;
  readonly leaf: Uint8Array;
  readonly publicKey: Uint8Array;
  readonly message: Uint8Array;
  /** 64 bytes. */
  readonly signature: Uint8Array;
}

/** Completes "event N …". */
export class InvalidStub extends Error {
  override readonly name = 'InvalidStub';
}

/**
 * The claim of somebody else's line, which is canonical and of a known shape apart from `withheld`; undefined if it has no such member.
 * Throws InvalidStub for a line that no service may have made: without texts, with a text left in, or malformed.
 */
export function stubClaim(line: ForumEvent): StubClaim | undefined {
  if (line.withheld === undefined) return undefined;
  const { withheld, ...event } = line;
  const problem = withheldProblem(withheld) ?? problemOfTexts(event);
  if (problem !== undefined) throw new InvalidStub(problem);
  const { signature, ...terms } = withheld;
  const publicKey = decodeKey(withheld.key);
  if (publicKey === undefined) throw new InvalidStub('withheld has a key that must not be used');
  if (thumbprintOf(publicKey) !== withheld.keyid) throw new InvalidStub('withheld has a keyid that is not of its key');
  return {
    withheld,
    leaf: fromHex(withheld.leaf),
    publicKey,
    message: messageOf({ ...event, withheld: terms }),
    signature: base64urlnopad.decode(signature),
  };
}

function problemOfTexts({ type, payload, request }: Omit<ForumEvent, 'withheld'>): string | undefined {
  if (!hasTexts(type)) return `is a stub of type ${type}, which has no texts`;
  if (canonicalJson(withoutTexts(type, payload)) !== canonicalJson(payload))
    return `is a stub with a text left in its payload: ${textsIn(type, payload).join(', ') || 'a member that must be absent'}`;
  if (request !== null && bodyHoldsText(type, request.body)) return 'is a stub with a text left in its request';
  return undefined;
}

const ANOTHER_LEAF = 'it has another leaf';

/** Why a line can't be the one that a stub replaced; undefined if it can. Both are canonical; the stub has the right form. */
export function originalProblem(
  original: string,
  stub: ForumEvent & { readonly withheld: Withheld },
): string | undefined {
  const { withheld } = stub;
  if (toHex(leafHash(encoder.encode(original))) !== withheld.leaf) return ANOTHER_LEAF;
  const event = fromLine(original);
  if (event.withheld !== undefined) return 'it is a stub itself';
  if (textsIn(event.type, event.payload).length === 0) return 'it holds no text';
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

/** Whether two stubs of one event differ in more than when, why and by which key it was withheld. */
export function contradicts(one: Stub, other: Stub): boolean {
  const { at, reason, key, keyid, signature } = other.withheld;
  return toLine({ ...one, withheld: { ...one.withheld, at, reason, key, keyid, signature } }) !== toLine(other);
}
