// Compares the service's responses with its lines. Responses lack withheld texts, even if the caller provided the originals.
import type { ChamberState } from '../../../projections/chamber.ts';
import { outcomeOf } from '../../../projections/outcome.ts';
import { allocationsView, chamberView, ideaViews } from '../../../projections/views.ts';
import { instantOf, type Millis, toTimestamp } from '../../vocabulary/values.ts';
import type { ChamberAudit } from '../chamber/chamber-audit.ts';
import { isAhead } from '../context.ts';
import { UnusableInput } from '../line/input.ts';
import { differences, LOSS_CHECKS } from '../report/findings.ts';
import { type AuditedService, type JsonResponse, Rejected } from './service-reader.ts';
import { WithheldLines } from './withheld-lines.ts';

const ATTEMPTS_MAX = 5;

interface Compared {
  readonly service: AuditedService;
  readonly chamberId: number;
  /** When the first read of the lines began, by the auditor's clock. */
  readonly readFrom: Millis;
}

/** Rereads the views until no event arrives in between. The audit takes new events, which must not be older than the first read. */
export async function compareViews(audit: ChamberAudit, { service, chamberId, readFrom }: Compared): Promise<void> {
  const withheld = new WithheldLines({ readFrom, servedAt: service.linesServedAt });
  let isCompared = false;
  for (let attempt = 0; attempt < ATTEMPTS_MAX && !isCompared; attempt++) {
    const responses = await readResponses(service, `/chambers/${chamberId}`, audit.decisions.served);
    const before = audit.lineCount;
    try {
      for await (const line of service.lines(chamberId, before)) {
        withheld.take(line);
        await audit.take(line);
      }
    } catch (error) {
      const problem = `the service returns an error for lines after the last one: ${responseError(error).message}`;
      audit.findings.judge('views', [], problem);
    }
    isCompared = audit.lineCount === before;
    if (isCompared) compare(audit, responses);
  }
  withheld.report(audit.findings);
  if (isCompared) return;
  const why = 'the chamber’s log grew during every comparison';
  audit.findings.notEvaluated({ needs: 'service', why }, 'preview', 'views');
}

type Responses = Awaited<ReturnType<typeof readResponses>>;
type Response = Responses['chamber'];

/** Reads all views concurrently, because an audit of small chambers mostly waits for responses. */
async function readResponses(service: AuditedService, chamberPath: string, state: ChamberState | null) {
  const read = async (path: string, expected?: object | null) => {
    const { length } = JSON.stringify(expected ?? null);
    return { path, json: await service.readView(path, length).catch(responseError) };
  };
  const now = Date.now();
  const outcome = state && outcomeOf(state, now);
  const [chamber, ideas, allocations, preview, settled] = await Promise.all([
    read(chamberPath, state && chamberView(state, now)),
    read(`${chamberPath}/ideas`, state && ideaViews(state)),
    read(`${chamberPath}/allocations`, state && allocationsView(state, Number.POSITIVE_INFINITY)),
    read(`${chamberPath}/merkle-preview`),
    outcome && 'view' in outcome ? read(`${chamberPath}/outcome`, outcome.view) : undefined,
  ]);
  return { chamber, ideas, allocations, preview, settled };
}

/** Rethrows errors other than those of the response itself. */
function responseError(error: unknown): UnusableInput {
  if (error instanceof UnusableInput) return error;
  throw error;
}

const NOT_FOUND = 404;

/** An earlier release lacks the path, and its creations record no keys. */
function isFromEarlierRelease({ json }: Response, { pinnedKeys }: ChamberAudit): boolean {
  return pinnedKeys === undefined && json instanceof Rejected && json.status === NOT_FOUND;
}

function compare(audit: ChamberAudit, { chamber, ideas, allocations, preview, settled }: Responses): void {
  const { findings, moves, context } = audit;
  const { served: state, lostEventId } = audit.decisions;
  // A service's time never decreases: after its clock was set back, the view's time is ahead of the Date header, but never behind.
  const stated = chamber.json instanceof UnusableInput ? Number.NaN : statedTime(chamber.json.body);
  const judge = (name: 'preview' | 'views', { path, json }: Response, viewAt: (now: Millis) => object) => {
    const differing =
      json instanceof UnusableInput
        ? [json.message]
        : leastDifferences(viewAt, { state, stated }, { ...json, at: json.at || context.clock.now() });
    const problem = `GET ${path} does not match the lines: ${differing.join(', ')}`;
    findings.judge(name, [], differing.length > 0 && problem);
  };
  if (audit.decisions.isTreeKnown)
    judge('preview', preview, () => ({ root: moves.root(), eventCount: moves.size, asOfEventId: moves.size }));
  if (lostEventId !== undefined) {
    const why = `event ${lostEventId} is lost, and the views depend on it`;
    findings.notEvaluated({ follows: LOSS_CHECKS, why }, 'views');
    return;
  }
  if (state === null) {
    const why = 'the chamber was not created, and the views depend on it';
    findings.notEvaluated({ follows: ['rules', 'service-events'], why }, 'views');
    return;
  }
  const ahead = latestOf(stated, chamber, ideas, allocations);
  if (isAhead(ahead, context)) findings.undecided('views', AHEAD(ahead));
  judge('views', chamber, (now) => chamberView(state, now));
  judge('views', ideas, () => ideaViews(state));
  judge('views', allocations, (now) => allocationsView(state, now));
  const outcome = outcomeOf(state, Date.now());
  if (settled !== undefined && 'view' in outcome && !isFromEarlierRelease(settled, audit)) {
    judge('views', settled, () => outcome.view);
  }
}

/** Phases end according to the service's time, so views must not be dated in the future either. */
const AHEAD = (at: Millis) =>
  `the service’s responses are dated in the future, ${toTimestamp(at)}: if your clock is wrong, state the time with --now`;

function latestOf(stated: Millis, ...responses: readonly Response[]): Millis {
  const times = responses.map(({ json }) => (json instanceof UnusableInput ? Number.NaN : json.at));
  return Math.max(...[stated, ...times].filter((time) => !Number.isNaN(time)));
}

const STEP_MILLIS = 250;
/** A Date header has a resolution of one second and may be a second old. */
const EARLIER_MILLIS = 1_500;
const LATER_MILLIS = 2_500;

/** Phase and turn depend on the time, so the response must match at some time near its Date header, or at the view's own time. */
function leastDifferences(
  viewAt: (now: Millis) => object,
  { state, stated }: { readonly state: ChamberState | null; readonly stated: Millis },
  { body, at }: JsonResponse,
): readonly string[] {
  const ends = Object.values(state?.ends ?? {});
  const times = [at, ...ends.filter((end) => Math.abs(end - at) < LATER_MILLIS)];
  if (stated > at - LATER_MILLIS) times.push(stated);
  for (let now = at - EARLIER_MILLIS; now < at + LATER_MILLIS; now += STEP_MILLIS) times.push(now);
  let least: readonly string[] | undefined;
  for (const now of times) {
    const expected = viewAt(now);
    const isList = Array.isArray(expected);
    if (typeof body !== 'object' || body === null || Array.isArray(body) !== isList)
      return [`it is not ${isList ? 'a list' : 'an object'}`];
    // An object may have additional members; a list may not have additional items.
    const differing = differences(expected, body, isList);
    if (least === undefined || differing.length < least.length) least = differing;
    if (least.length === 0) break;
  }
  return least ?? [];
}

/** The time in the chamber's view; NaN if absent. */
function statedTime(body: unknown): Millis {
  const { now } = Object(body) as { readonly now?: unknown };
  return typeof now === 'string' ? instantOf(now) : Number.NaN;
}
