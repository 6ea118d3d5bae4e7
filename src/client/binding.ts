// Binds a commitment's opening to the service, the chamber and the earliest time to reveal it. The client does not trust the service with
// these: it could ask for the reveal too early, or be a different service from the one where the agent committed.
import type { ChamberState } from '../../projections/chamber.ts';
import { lacksMembers } from '../../projections/phase-ends.ts';
import { commitmentHash, type Opening } from '../crypto/commitment.ts';
import { contentDigestOf, digestProblem } from '../crypto/content-digest.ts';
import { parseDid, weaknessOf } from '../crypto/did-key.ts';
import { parseSignature, signatureBase } from '../crypto/http-signature.ts';
import type { ReadLimits } from '../reading/limits.ts';
import type { ChamberEvent, MoveEvent, RequestEvidence } from '../vocabulary/events.ts';
import { canonicalJson } from '../vocabulary/json.ts';
import { DEADLINES, type Hex, instantOf, type Millis, type Rounds, toTimestamp } from '../vocabulary/values.ts';
import type { CallOptions, Page, Service } from './call.ts';
import { ChamberFold } from './chamber-fold.ts';
import { ClientError, parseJson } from './error.ts';
import { type Cursor, followServed, history, START } from './events.ts';
import { exchangeWithHeaders } from './exchange.ts';
import { isSignature } from './verify.ts';

export interface Binding {
  readonly service: string;
  /** The log that the chamber belongs to; null if the service does not name it. */
  readonly logId: string | null;
  /** The leaf of the chamber's first line, which contains its deadlines. */
  readonly chamberLeaf: Hex;
  /** The chamber's deadlines, rounds and minMembers in canonical JSON. Once the creation is withheld, only the service attests them. */
  readonly terms?: string;
  /** The last event read of a chamber with rounds, whose members no longer change after it. */
  readonly head?: Cursor;
  /** How far the service's clock was ahead of this machine's. */
  readonly clockAheadMillis: Millis;
}

/** An opening as stored. Earlier versions stored no binding. */
export interface StoredOpening extends Opening {
  readonly binding?: Binding;
}

export interface ProvenChamber extends Pick<Binding, 'logId' | 'chamberLeaf' | 'head'> {
  readonly state: ChamberState;
  readonly terms: string;
  readonly isCreationWithheld: boolean;
}

/**
 * Returns when commits close, in the service's time, from verified lines alone. If too few joins were read, returns the deadline, because
 * the chamber may have enough members.
 */
export function commitsClosedAt({ state }: ProvenChamber): Millis {
  return (lacksMembers(state) ? state.deadlines : state.ends).allocateCommitDeadline;
}

/**
 * Reads the chamber's first line, or every line if the chamber has rounds, because its commits close as soon as all members have committed.
 * Throws CLIENT_ERR_CHAIN unless the creator signed the deadlines and rounds (or the service signed the stub of a withheld creation), each
 * member signed its join and commitment, and the lines include `known`.
 */
export async function readProvenChamber(
  service: Service,
  chamberId: number,
  { signal, known }: CallOptions & { readonly known?: Cursor | undefined },
): Promise<ProvenChamber> {
  const path = `/chambers/${chamberId}/events?after=0&limit=1`;
  const { value, headers } = await exchangeWithHeaders<Page>(service, { method: 'GET', path, as: 'page' }, signal);
  const first = { cursor: START, stream: chamberId, line: value.lines[0] ?? '' };
  const { event, leaf } = await followServed(service, first, signal);
  if (event.type !== 'chamber.created' || !areDeadlinesAttested(event, service)) {
    throw new ClientError('CLIENT_ERR_CHAIN', `the deadlines of chamber ${chamberId} are not signed by its creator`);
  }
  const fold = new ChamberFold(service.limits);
  let state = fold.take(event);
  const { deadlines, rounds, minMembers } = state;
  const origin = {
    logId: headers.get('Log-Id'),
    chamberLeaf: leaf,
    terms: canonicalJson({ deadlines, rounds, minMembers }),
    isCreationWithheld: event.withheld !== undefined,
  };
  if (state.rounds === null) return { state, ...origin };
  let head: Cursor = { eventId: event.eventId, leaf };
  let isKnown = known === undefined;
  for await (const line of history(service, chamberId, { after: head, ...(signal && { signal }) })) {
    requireSignedMembership(line.event);
    state = fold.take(line.event);
    head = { eventId: line.eventId, leaf: line.leaf };
    isKnown ||= line.eventId === known?.eventId && line.leaf === known.leaf;
  }
  if (!isKnown)
    throw new ClientError('CLIENT_ERR_CHAIN', `chamber ${chamberId} is not the one that the agent committed in`);
  return { state, ...origin, head };
}

/** Throws CLIENT_ERR_CHAIN for a forged join or commitment, which would change when commits close. */
function requireSignedMembership(event: ChamberEvent): void {
  if (event.type !== 'chamber.joined' && event.type !== 'allocation.committed') return;
  const { did, request, chamberId } = event;
  const path =
    event.type === 'chamber.joined' ? `/chambers/${chamberId}/join` : `/chambers/${chamberId}/allocate/commit`;
  try {
    if (request !== null && isRequestOf(did, request, path)) return;
  } catch {
    // A malformed request counts as unsigned.
  }
  throw new ClientError('CLIENT_ERR_CHAIN', `event ${event.eventId} of chamber ${chamberId} is not signed by ${did}`);
}

type Created = Extract<MoveEvent, { type: 'chamber.created' }>;

/** A withheld creation has lost the creator's signature; its stub, which was verified, is signed by the service. */
function areDeadlinesAttested(created: Created, { limits, warnings }: Service): boolean {
  const { chamberId, withheld } = created;
  if (withheld === undefined) return areDeadlinesSigned(created, limits);
  warnings.begin(
    `withheld creation ${chamberId}`,
    `the creation of chamber ${chamberId} is withheld (${withheld.reason}): the service alone attests its deadlines`,
  );
  return true;
}

function areDeadlinesSigned({ did, request, payload }: Created, limits: ReadLimits): boolean {
  try {
    if (request === null || !isRequestOf(did, request, '/chambers')) return false;
    const body = parseJson(request.body ?? '', limits) as Readonly<Record<string, string>> & {
      readonly rounds?: Rounds;
    };
    const { rounds } = payload;
    const haveRounds = body.rounds?.proposal === rounds?.proposal && body.rounds?.debate === rounds?.debate;
    return haveRounds && DEADLINES.every((name) => instantOf(body[name] ?? '') === instantOf(payload.deadlines[name]));
  } catch {
    // A malformed line counts as unsigned.
    return false;
  }
}

const utf8 = new TextEncoder();

/** Returns whether the agent signed the request, a POST to this path under any base URL. */
function isRequestOf(did: string, request: RequestEvidence, path: string): boolean {
  const key = parseDid(did);
  if (key === undefined || weaknessOf(key) !== undefined) return false;
  const parsed = parseSignature(request);
  const isToPath = request.method === 'POST' && new URL(request.targetUri).pathname.endsWith(path);
  const digest = contentDigestOf(utf8.encode(request.body ?? ''));
  return (
    isToPath &&
    parsed.keyid === did &&
    digestProblem(request.contentDigest, digest) === undefined &&
    isSignature(key, utf8.encode(signatureBase(parsed, request)), parsed.signature)
  );
}

/** Returns the binding for a new commitment. Throws FORUM_ERR_PHASE if commits are closed. */
export function bindingFor({ baseUrl, clock }: Service, chamber: ProvenChamber): Binding {
  const closedAt = commitsClosedAt(chamber);
  if (!(clock.now() < closedAt)) {
    const { chamberId } = chamber.state;
    throw new ClientError(
      'FORUM_ERR_PHASE',
      `commits in chamber ${chamberId} have been closed since ${textOf(closedAt)}`,
    );
  }
  const clockAheadMillis = clock.now() - clock.local.now();
  const { logId, chamberLeaf, terms, head } = chamber;
  return { service: baseUrl, logId, chamberLeaf, terms, clockAheadMillis, ...(head && { head }) };
}

/** Throws CLIENT_ERR_COMMITMENT unless the opening is the owner's and hashes to the commitment. */
export function requireOpening(opening: Opening, commitment: Hex, owner: Pick<Opening, 'chamberId' | 'did'>): void {
  const isOwn = opening.chamberId === owner.chamberId && opening.did === owner.did;
  if (isOwn && commitmentHash(opening) === commitment) return;
  const problem = `the opening stored under ${commitment} is not this agent's in chamber ${owner.chamberId}`;
  throw new ClientError('CLIENT_ERR_COMMITMENT', problem);
}

/** If a reveal is early by no more than this, the client waits. */
const EARLY_MILLIS_MAX = 30_000;
const TRUST_SERVICE_HINT = 'if you are sure that commits are closed, reveal with trustService (--trust-service)';

/**
 * Resolves once the opening may be revealed. Throws CLIENT_ERR_COMMITMENT if the agent committed at another service or chamber, or with a
 * version that stored no binding, and CLIENT_ERR_EARLY while commits are open according to this machine's clock, corrected as it was when
 * the agent committed.
 */
export async function untilRevealable(
  service: Service,
  { chamberId, binding }: StoredOpening,
  { signal }: CallOptions,
): Promise<void> {
  const { baseUrl, clock } = service;
  const misplaced = (problem: string) => new ClientError('CLIENT_ERR_COMMITMENT', `${problem}; ${TRUST_SERVICE_HINT}`);
  if (binding === undefined) throw misplaced('an earlier version stored this opening without its service and chamber');
  if (binding.service !== baseUrl) throw misplaced(`the commitment was made at ${binding.service}, not at ${baseUrl}`);
  const chamber = await readProvenChamber(service, chamberId, { ...(signal && { signal }), known: binding.head });
  if (chamber.logId !== binding.logId || chamber.chamberLeaf !== binding.chamberLeaf) {
    throw misplaced(`chamber ${chamberId} of ${baseUrl} is not the one in which the commitment was made`);
  }
  if (chamber.isCreationWithheld && chamber.terms !== binding.terms) {
    throw misplaced(
      `the creation of chamber ${chamberId} is withheld, and its deadlines are not those of the commitment`,
    );
  }
  const closedAt = commitsClosedAt(chamber);
  const left = () => closedAt - (clock.local.now() + binding.clockAheadMillis);
  if (!(left() <= EARLY_MILLIS_MAX)) {
    const seconds = Math.ceil(left() / 1000);
    const problem = `commits in chamber ${chamberId} are open until ${textOf(closedAt)} at the latest, for ${seconds} s by this machine’s clock`;
    throw new ClientError('CLIENT_ERR_EARLY', `${problem}; ${TRUST_SERVICE_HINT}`);
  }
  while (left() > 0) await clock.local.sleep(left(), signal);
}

/** Formats a time that comes from a hostile line and may be invalid. */
function textOf(at: Millis): string {
  return Number.isFinite(at) ? toTimestamp(at) : 'an unknown time';
}
