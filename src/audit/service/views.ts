// Compares the responses of a service with its lines: only this shows a service with right lines and wrong views.
import type { ChamberState } from '../../../projections/chamber.ts';
import { outcomeOf } from '../../../projections/outcome.ts';
import { allocationsView, chamberView, ideaViews } from '../../../projections/views.ts';
import { instantOf, type Millis } from '../../vocabulary/values.ts';
import type { ChamberAudit } from '../chamber/chamber-audit.ts';
import { UnusableInput } from '../line/input.ts';
import { differences, OF_LOSS } from '../report/findings.ts';
import { type AuditedService, type JsonResponse, Rejected } from './service-reader.ts';

const ATTEMPTS_MAX = 5;

/** Reads the views and the preview until no event came in between; the audit takes the events that do. */
export async function compareViews(audit: ChamberAudit, service: AuditedService, chamberId: number): Promise<void> {
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
    const responses = await readResponses(service, `/chambers/${chamberId}`, audit.decisions.state);
    const before = audit.lineCount;
    try {
      for await (const line of service.lines(chamberId, before)) await audit.take(line);
    } catch (error) {
      const problem = `the service returns no lines after the last one: ${problemOf(error).message}`;
      audit.findings.judge('views', [], problem);
    }
    if (audit.lineCount === before) return compare(audit, responses);
  }
  const why = 'the chamber’s log grew during every comparison';
  audit.findings.notEvaluated({ needs: 'service', why }, 'preview', 'views');
}

type Responses = Awaited<ReturnType<typeof readResponses>>;
type Response = Responses['chamber'];

/** Reads all of them at once: an audit of small chambers mostly waits for responses. */
async function readResponses(service: AuditedService, chamberPath: string, state: ChamberState | null) {
  const read = async (path: string, expected?: object | null) => {
    const { length } = JSON.stringify(expected ?? null);
    return { path, json: await service.readView(path, length).catch(problemOf) };
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

/** Rethrows anything but a response that is not the one due. */
function problemOf(error: unknown): UnusableInput {
  if (error instanceof UnusableInput) return error;
  throw error;
}

const NOT_FOUND = 404;

/** A service of an earlier release has the chamber, and no such path. */
function isOfEarlierRelease({ json }: Response): boolean {
  return json instanceof Rejected && json.status === NOT_FOUND;
}

function compare(audit: ChamberAudit, { chamber, ideas, allocations, preview, settled }: Responses): void {
  const { findings, moves } = audit;
  const { state, lostEventId } = audit.decisions;
  // A service's time never falls: after its clock was set back it is ahead of the Date header, but never behind.
  const stated = chamber.json instanceof UnusableInput ? Number.NaN : statedTime(chamber.json.body);
  const judge = (name: 'preview' | 'views', { path, json }: Response, viewAt: (now: Millis) => object) => {
    const differing =
      json instanceof UnusableInput ? [json.message] : leastDifferences(viewAt, { state, stated }, json);
    const problem = `GET ${path} does not match the lines: ${differing.join(', ')}`;
    findings.judge(name, [], differing.length > 0 && problem);
  };
  if (audit.decisions.isTreeKnown)
    judge('preview', preview, () => ({ root: moves.root(), eventCount: moves.size, asOfEventId: moves.size }));
  if (lostEventId !== undefined) {
    const why = `event ${lostEventId} is lost, and the views depend on it`;
    findings.notEvaluated({ follows: OF_LOSS, why }, 'views');
    return;
  }
  if (state === null) {
    const why = 'the chamber was not created, and the views depend on it';
    findings.notEvaluated({ follows: ['rules', 'service-events'], why }, 'views');
    return;
  }
  judge('views', chamber, (now) => chamberView(state, now));
  judge('views', ideas, () => ideaViews(state));
  judge('views', allocations, (now) => allocationsView(state, now));
  const outcome = outcomeOf(state, Date.now());
  if (settled !== undefined && 'view' in outcome && !isOfEarlierRelease(settled)) {
    judge('views', settled, () => outcome.view);
  }
}

const STEP_MILLIS = 250;
/** A Date header is to the second and may be a second old. */
const EARLIER_MILLIS = 1_500;
const LATER_MILLIS = 2_500;

/**
 * Phase and turn follow the clock: the response is right if it was so at any time around its Date header, or at the time that
 * the chamber's view states.
 */
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
    // The known members of an object count, and every item of a list.
    const differing = differences(expected, body, isList);
    if (least === undefined || differing.length < least.length) least = differing;
    if (least.length === 0) break;
  }
  return least ?? [];
}

/** The time for which the chamber's view says that it holds; NaN if it says none. */
function statedTime(body: unknown): Millis {
  const { now } = Object(body) as { readonly now?: unknown };
  return typeof now === 'string' ? instantOf(now) : Number.NaN;
}
