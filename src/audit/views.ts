// Compares the responses of a service with its lines: only this shows a service with right lines and wrong views.
import type { ChamberState } from '../../projections/chamber.ts';
import { allocationsView, chamberView, ideaViews } from '../../projections/views.ts';
import type { Millis } from '../vocabulary/values.ts';
import type { ChamberAudit } from './chamber-audit.ts';
import { differences } from './findings.ts';
import { UnusableInput } from './input.ts';
import type { AuditedService, JsonResponse } from './service.ts';

const ATTEMPTS_MAX = 5;

/** Reads the views and the preview until no event came in between; the audit takes the events that do. */
export async function compareViews(audit: ChamberAudit, service: AuditedService, chamberId: number): Promise<void> {
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
    const responses = await readResponses(service, `/chambers/${chamberId}`);
    const before = audit.lineCount;
    await catchUp(audit, service, chamberId);
    if (audit.lineCount === before) return compare(audit, responses);
  }
  for (const check of ['preview', 'views'] as const) {
    audit.findings.notEvaluated(check, 'the chamber’s log grew during every comparison');
  }
}

async function catchUp(audit: ChamberAudit, service: AuditedService, chamberId: number): Promise<void> {
  try {
    for await (const line of service.lines(chamberId, audit.lineCount)) await audit.take(line);
  } catch (error) {
    if (!(error instanceof UnusableInput)) throw error;
    audit.findings.broken('views', [], `the service returns no lines after the last one: ${error.message}`);
  }
}

/** A text stands for a response that is not the one due. */
type Response = JsonResponse | string;
type Responses = Readonly<Record<'chamber' | 'ideas' | 'allocations' | 'preview', Response>>;

async function readResponses(service: AuditedService, path: string): Promise<Responses> {
  return {
    chamber: await read(service, path),
    ideas: await read(service, `${path}/ideas`),
    allocations: await read(service, `${path}/allocations`),
    preview: await read(service, `${path}/merkle-preview`),
  };
}

async function read(service: AuditedService, path: string): Promise<Response> {
  try {
    return await service.read(path);
  } catch (error) {
    if (error instanceof UnusableInput) return error.message;
    throw error;
  }
}

function compare(audit: ChamberAudit, { chamber, ideas, allocations, preview }: Responses): void {
  const { findings, state, lostEventId, root, moveCount } = audit;
  const judge = (check: 'preview' | 'views', request: string, differing: readonly string[]) => {
    const sentence = `GET ${request} does not match the lines: ${differing.join(', ')}`;
    findings.judge(check, differing.length === 0, { eventIds: [], sentence });
  };
  const expected = { root, eventCount: moveCount, asOfEventId: moveCount };
  judge('preview', '…/merkle-preview', differencesOf(expected, preview));
  if (state === null || lostEventId !== undefined) {
    findings.notEvaluated('views', `event ${lostEventId ?? 1} is lost, and the views depend on it`);
    return;
  }
  const chamberAt = (now: Millis) => chamberView(state, now);
  judge('views', `/chambers/${state.chamberId}`, leastDifferences(chamberAt, state, chamber));
  judge('views', '…/ideas', differencesOf(ideaViews(state), ideas));
  const allocationsAt = (now: Millis) => allocationsView(state, now);
  judge('views', '…/allocations', leastDifferences(allocationsAt, state, allocations));
}

/** Of an object the members known here count, of a list every item. */
function differencesOf(expected: object, response: Response): readonly string[] {
  if (typeof response === 'string') return [response];
  const { body } = response;
  const isList = Array.isArray(expected);
  if (typeof body !== 'object' || body === null || Array.isArray(body) !== isList)
    return [`it is not ${isList ? 'a list' : 'an object'}`];
  return differences(expected, body, isList);
}

const STEP_MILLIS = 250;
/** A Date header is to the second and may be a second old. */
const EARLIER_MILLIS = 1_500;
const LATER_MILLIS = 2_500;

/** Phase and turn follow the clock: the response is right if it was so at any time around its Date header. */
function leastDifferences(
  viewAt: (now: Millis) => object,
  { deadlines }: ChamberState,
  response: Response,
): readonly string[] {
  if (typeof response === 'string') return [response];
  const { at } = response;
  const times = [at, ...Object.values(deadlines).filter((deadline) => Math.abs(deadline - at) < LATER_MILLIS)];
  for (let now = at - EARLIER_MILLIS; now < at + LATER_MILLIS; now += STEP_MILLIS) times.push(now);
  const candidates = times.map((now) => differencesOf(viewAt(now), response));
  return candidates.sort((a, b) => a.length - b.length)[0] ?? [];
}
