// Binds a commitment's opening to the service, the chamber and the earliest time to reveal it. The service is not trusted with these:
// it could ask early, or be another service than the agent committed at.
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
import { exchangeWhole } from './exchange.ts';
import { isSignature } from './verify.ts';

export interface Binding {
  /** The base URL that the agent used. */
  readonly service: string;
  /** The log that the chamber belongs to; null if the service does not name it. */
  readonly logId: string | null;
  /** The leaf of the chamber's first line, which contains its deadlines. */
  readonly chamberLeaf: Hex;
  /** The creation's deadlines, rounds and minMembers in canonical JSON. Once the creation is withheld, only the service attests them. */
  readonly terms?: string;
  /** The last event of a chamber with rounds: its members no longer change after it. */
  readonly head?: Cursor;
  /** How far the service's clock was ahead of the machine's. */
  readonly clockAheadMillis: Millis;
}

/** Earlier versions stored no binding. */
export interface StoredOpening extends Opening {
  readonly binding?: Binding;
}

/** A chamber proven by its lines. */
export interface ProvenChamber extends Pick<Binding, 'logId' | 'chamberLeaf' | 'head'> {
  readonly state: ChamberState;
  readonly terms: string;
  readonly isCreationWithheld: boolean;
}

/**
 * When commits close, in the service's time. Depends only on verified lines. If joins were not read, the deadline counts: the chamber may
 * have enough members.
 */
export function commitsClosedAt({ state }: ProvenChamber): Millis {
  return (lacksMembers(state) ? state.deadlines : state.ends).allocateCommitDeadline;
}

/**
 * Reads the chamber's first line; in a chamber with rounds, where commits close as soon as all members have committed, every line.
 * Throws CLIENT_ERR_CHAIN unless the creator signed deadlines and rounds, or the service signed the stub of a withheld creation; each
 * member signed its join and commitment; and the lines include `known`.
 */
export async function readProvenChamber(
  service: Service,
  chamberId: number,
  { signal, known }: CallOptions & { readonly known?: Cursor | undefined },
): Promise<ProvenChamber> {
  const path = `/chambers/${chamberId}/events?after=0&limit=1`;
  const { value, headers } = await exchangeWhole<Page>(service, { method: 'GET', path, as: 'page' }, signal);
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
    requireSignedSeat(line.event);
    state = fold.take(line.event);
    head = { eventId: line.eventId, leaf: line.leaf };
    isKnown ||= line.eventId === known?.eventId && line.leaf === known.leaf;
  }
  if (!isKnown)
    throw new ClientError('CLIENT_ERR_CHAIN', `chamber ${chamberId} is not the one that the agent committed in`);
  return { state, ...origin, head };
}

/** A forged join or commitment would change when commits close: when all members have committed. Throws CLIENT_ERR_CHAIN. */
function requireSignedSeat(event: ChamberEvent): void {
  if (event.type !== 'chamber.joined' && event.type !== 'allocation.committed') return;
  const { did, request, chamberId } = event;
  const path =
    event.type === 'chamber.joined' ? `/chambers/${chamberId}/join` : `/chambers/${chamberId}/allocate/commit`;
  try {
    if (request !== null && isRequestOf(did, request, path)) return;
  } catch {
    // A malformed request is not signed either.
  }
  throw new ClientError('CLIENT_ERR_CHAIN', `event ${event.eventId} of chamber ${chamberId} is not signed by ${did}`);
}

type Created = Extract<MoveEvent, { type: 'chamber.created' }>;

/** The creator's signature is erased with a withheld creation. A stub that was followed is signed by the service. */
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
    // A malformed line is not signed either.
    return false;
  }
}

const utf8 = new TextEncoder();

/** Checks that the agent signed the request, a POST to the path below any base URL. */
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

/** Throws FORUM_ERR_PHASE if commits are closed. */
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
export function requireOpens(opening: Opening, commitment: Hex, owner: Pick<Opening, 'chamberId' | 'did'>): void {
  const isOwn = opening.chamberId === owner.chamberId && opening.did === owner.did;
  if (isOwn && commitmentHash(opening) === commitment) return;
  const problem = `the opening stored under ${commitment} is not one of this agent in chamber ${owner.chamberId}`;
  throw new ClientError('CLIENT_ERR_COMMITMENT', problem);
}

/** A reveal that is early by no more than this waits. */
const EARLY_MILLIS_MAX = 30_000;
const OTHERWISE = 'if you are sure that commits are closed, reveal with trustService (--trust-service)';

/**
 * Resolves once the opening may be revealed. Throws CLIENT_ERR_COMMITMENT if it was committed elsewhere, or by a version that stored
 * no binding, and CLIENT_ERR_EARLY while commits are open: by this machine's clock, corrected as at the commit.
 */
export async function untilRevealable(
  service: Service,
  { chamberId, binding }: StoredOpening,
  { signal }: CallOptions,
): Promise<void> {
  const { baseUrl, clock } = service;
  const misplaced = (problem: string) => new ClientError('CLIENT_ERR_COMMITMENT', `${problem}; ${OTHERWISE}`);
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
    throw new ClientError('CLIENT_ERR_EARLY', `${problem}; ${OTHERWISE}`);
  }
  while (left() > 0) await clock.local.sleep(left(), signal);
}

/** A hostile line may contain no valid time. */
function textOf(at: Millis): string {
  return Number.isFinite(at) ? toTimestamp(at) : 'an unknown time';
}
