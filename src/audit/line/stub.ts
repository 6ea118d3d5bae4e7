// Judges stubs, the lines whose texts a service has withheld: form, signature, log and key. Compares them with the original lines if
// the caller has kept them.
import { contradicts, InvalidStub, originalProblem, type StubClaim, stubClaim } from '../../crypto/stub.ts';
import { toVerifyingKey } from '../../crypto/verify.ts';
import { MISBEHAVIOUR, type Misbehaviour } from '../../tlog/misbehaviour.ts';
import { type ForumEvent, toLine } from '../../vocabulary/events.ts';
import { instantOf } from '../../vocabulary/values.ts';
import type { Withheld } from '../../vocabulary/withheld.ts';
import type { AuditContext } from '../context.ts';
import type { Problem } from '../report/findings.ts';

export type StubEvent = ForumEvent & { readonly withheld: Withheld };

/** A stub whose signature is being verified. */
export interface StubSignature {
  readonly event: StubEvent;
  readonly claim: StubClaim | undefined;
  /** The problem with the stub's form. */
  readonly problem: string | undefined;
  readonly isSigned: boolean | Promise<boolean>;
}

export interface StartedStub extends StubSignature {
  /** The original line, if it was provided and matches the stub. */
  readonly original: Uint8Array | undefined;
  /** Set if the provided original does not match the stub. */
  readonly contradiction: Contradiction | undefined;
  /** The provided stubs of this event that contradict it. Anybody can forge a stub, so it counts only if the service signed it. */
  readonly others: readonly StubSignature[];
}

export interface Contradiction {
  readonly problem: string;
  readonly proof: Misbehaviour;
}

/** Starts verifying the stub's signature; returns undefined if the line is not a stub. */
export function startStub(event: ForumEvent | undefined, context: AuditContext): StartedStub | undefined {
  if (event === undefined || !isStub(event)) return undefined;
  const others = context.originals
    ?.stubsOf(event)
    .filter((other) => hasSameLog(other, event) && contradicts(other, event));
  return {
    ...startSignature(event, context),
    ...compareOriginal(event, context),
    others: (others ?? []).map((other) => startSignature(other, context)),
  };
}

function hasSameLog(one: StubEvent, other: StubEvent): boolean {
  return one.withheld.log === other.withheld.log;
}

function startSignature(event: StubEvent, context: AuditContext): StubSignature {
  const { claim, problem } = claimOf(event);
  return { event, claim, problem, isSigned: claim === undefined ? false : verifyClaim(claim, context) };
}

function isStub(event: ForumEvent): event is StubEvent {
  return event.withheld !== undefined;
}

function claimOf(event: StubEvent): { readonly claim?: StubClaim | undefined; readonly problem?: string } {
  try {
    return { claim: stubClaim(event) };
  } catch (error) {
    if (!(error instanceof InvalidStub)) throw error;
    return { problem: error.message };
  }
}

function verifyClaim({ publicKey, message, signature, withheld }: StubClaim, context: AuditContext) {
  const name = `stub ${withheld.key}`;
  const key = context.keys.get(name) ?? toVerifyingKey(publicKey);
  context.keys.set(name, key);
  return context.verify(key, message, signature);
}

const utf8 = new TextEncoder();

function compareOriginal(
  event: StubEvent,
  { originals }: AuditContext,
): Pick<StartedStub, 'original' | 'contradiction'> {
  const line = originals?.lineWith(event.withheld.leaf);
  const problem = line && originalProblem(line, event);
  if (line === undefined || problem === undefined) {
    return { original: line === undefined ? undefined : utf8.encode(line), contradiction: undefined };
  }
  const proof: Misbehaviour = { format: MISBEHAVIOUR, kind: 'stub-and-line', stub: toLine(event), line };
  return {
    original: undefined,
    contradiction: { problem: `is a stub that its original contradicts: ${problem}`, proof },
  };
}

export function contradictionOf(other: StubSignature, { event }: StartedStub): Contradiction {
  const proof: Misbehaviour = { format: MISBEHAVIOUR, kind: 'two-stubs', stubs: [toLine(other.event), toLine(event)] };
  return { problem: 'is a stub that a kept stub of this event contradicts', proof };
}

/** Resolves to the stub's problem; `pinned` is the receipts key that the chamber's first line pins. */
export async function stubProblem(
  { claim, problem, isSigned, event }: StubSignature,
  context: AuditContext,
  pinned: string | undefined,
): Promise<Problem> {
  if (problem !== undefined || claim === undefined) return problem ?? 'is not a stub';
  if (!(await isSigned)) return 'is a stub whose signature does not verify';
  return await signerProblem(event.withheld, context, pinned);
}

async function signerProblem(
  { log, keyid, at }: Withheld,
  context: AuditContext,
  pinned: string | undefined,
): Promise<Problem> {
  const { signers } = context;
  const logId = signers?.logId() ?? context.stubLog.logId ?? log;
  context.stubLog.logId ??= log;
  if (log !== logId) return `is a stub of the log ${log}, not of ${logId}`;
  if (keyid === pinned) return undefined;
  const directory = await signers?.directory();
  if (directory === undefined)
    return {
      doubt: `is withheld under a key that its chamber does not pin: audit the service’s URL, which shows its keys`,
    };
  const key = directory.get(keyid);
  if (key === undefined) return 'is withheld under a key that is not one of the service’s';
  const seconds = instantOf(at) / 1_000;
  const { nbf = Number.NEGATIVE_INFINITY, exp = Number.POSITIVE_INFINITY } = key;
  return nbf <= seconds && seconds < exp ? undefined : `was withheld at ${at}, when its key was not in force`;
}
