// Judges stubs, the lines whose texts a service has withheld: their form, signature, log and key, and the lines that were, where the
// caller has kept them.
import { contradicts, InvalidStub, originalProblem, type StubClaim, stubClaim } from '../../crypto/stub.ts';
import { toVerifyingKey } from '../../crypto/verify.ts';
import { MISBEHAVIOUR, type Misbehaviour } from '../../tlog/misbehaviour.ts';
import { type ForumEvent, toLine } from '../../vocabulary/events.ts';
import { instantOf } from '../../vocabulary/values.ts';
import type { Withheld } from '../../vocabulary/withheld.ts';
import type { AuditContext } from '../context.ts';
import type { Problem } from '../report/findings.ts';

export type StubEvent = ForumEvent & { readonly withheld: Withheld };

export interface StartedStub {
  readonly event: StubEvent;
  readonly claim: StubClaim | undefined;
  /** Of the form alone. */
  readonly problem: string | undefined;
  readonly isSigned: boolean | Promise<boolean>;
  /** The line that was, if it was given and explains the stub. */
  readonly original: Uint8Array | undefined;
  /** Of the line or the stubs that were given. */
  readonly contradiction: { readonly problem: string; readonly proof: Misbehaviour } | undefined;
}

/** Begins to verify the signature; undefined for a line that is no stub. */
export function startStub(event: ForumEvent | undefined, context: AuditContext): StartedStub | undefined {
  if (event === undefined || !isStub(event)) return undefined;
  const { claim, problem } = claimOf(event);
  const isSigned = claim === undefined ? false : verifyClaim(claim, context);
  return { event, claim, problem, isSigned, ...compareOriginals(event, context) };
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

function compareOriginals(
  event: StubEvent,
  { originals }: AuditContext,
): Pick<StartedStub, 'original' | 'contradiction'> {
  const stub = toLine(event);
  const original = originals?.lineWith(event.withheld.leaf);
  const problem = original && originalProblem(original, event);
  const other = originals?.stubsOf(event).find((each) => contradicts(each, event));
  const format = MISBEHAVIOUR;
  if (original !== undefined && problem !== undefined) {
    const proof: Misbehaviour = { format, kind: 'stub-and-line', stub, line: original };
    return {
      original: undefined,
      contradiction: { problem: `is a stub that its original contradicts: ${problem}`, proof },
    };
  }
  const kept = original === undefined ? undefined : utf8.encode(original);
  if (other === undefined) return { original: kept, contradiction: undefined };
  const proof: Misbehaviour = { format, kind: 'two-stubs', stubs: [toLine(other), stub] };
  return { original: kept, contradiction: { problem: 'is a stub that a kept stub of this event contradicts', proof } };
}

/** The problem of a stub; `pinned` is the receipts key that its chamber's first line pins. */
export async function problemOfStub(
  { claim, problem, isSigned, event }: StartedStub,
  context: AuditContext,
  pinned: string | undefined,
): Promise<Problem> {
  if (problem !== undefined || claim === undefined) return problem ?? 'is no stub';
  if (!(await isSigned)) return 'is a stub whose signature does not verify';
  return await problemOfSigner(event.withheld, context, pinned);
}

async function problemOfSigner(
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
  if (key === undefined) return 'is withheld under a key that is none of the service’s';
  const seconds = instantOf(at) / 1_000;
  const { nbf = Number.NEGATIVE_INFINITY, exp = Number.POSITIVE_INFINITY } = key;
  return nbf <= seconds && seconds < exp ? undefined : `is withheld at ${at}, when its key was not in force`;
}
