// Compares what a service answers with what its lines say: right lines beside wrong views are a lie that only this shows.
import type { ChamberState } from '../../projections/chamber.ts';
import { allocationsView, chamberView, ideaViews } from '../../projections/views.ts';
import type { Millis } from '../vocabulary/values.ts';
import type { ChamberAudit } from './audit.ts';
import { differences } from './differences.ts';
import type { AuditedService, ServiceAnswer } from './service.ts';
import { UnusableInput } from './unusable-input.ts';

const ATTEMPTS = 5;

/** Asks for the views and the preview until no event came in between; the audit takes the events that do. */
export async function compareAnswers(audit: ChamberAudit, service: AuditedService, chamberId: number): Promise<void> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const answers = await readAnswers(service, chamberId);
    const before = audit.lineCount;
    await catchUp(audit, service, chamberId);
    if (audit.lineCount === before) return compare(audit, answers);
  }
  const reason = 'the chamber’s log grew whenever it was compared';
  audit.ledger.notEvaluated('preview', reason);
  audit.ledger.notEvaluated('views', reason);
}

async function catchUp(audit: ChamberAudit, service: AuditedService, chamberId: number): Promise<void> {
  try {
    for await (const line of service.lines(chamberId, audit.lineCount)) await audit.take(line);
  } catch (error) {
    if (!(error instanceof UnusableInput)) throw error;
    audit.ledger.broken('views', [], `the service gives no lines after the last: ${error.message}`);
  }
}

interface Answers {
  readonly chamber: ServiceAnswer;
  readonly ideas: ServiceAnswer;
  readonly allocations: ServiceAnswer;
  readonly preview: ServiceAnswer;
}

async function readAnswers(service: AuditedService, chamberId: number): Promise<Answers> {
  const path = `/chambers/${chamberId}`;
  return {
    chamber: await hear(service, path),
    ideas: await hear(service, `${path}/ideas`),
    allocations: await hear(service, `${path}/allocations`),
    preview: await hear(service, `${path}/merkle-preview`),
  };
}

/** A service that refuses what everybody may ask has an answer that is not the one due. */
async function hear(service: AuditedService, path: string): Promise<ServiceAnswer> {
  try {
    return await service.read(path);
  } catch (error) {
    if (error instanceof UnusableInput) return { body: error.message, at: Date.now() };
    throw error;
  }
}

function compare(audit: ChamberAudit, { chamber, ideas, allocations, preview }: Answers): void {
  const { ledger, state, lossEventId, root, moveCount } = audit;
  const expected = { root, eventCount: moveCount, asOfEventId: moveCount };
  judge(audit, 'preview', 'GET …/merkle-preview', differencesOf(expected, preview.body));
  if (state === null || lossEventId !== undefined) {
    ledger.notEvaluated('views', `event ${lossEventId ?? 1} is lost, and the views depend on it`);
    return;
  }
  const viewAt = (now: Millis) => chamberView(state, now);
  judge(audit, 'views', `GET /chambers/${state.chamberId}`, differencesAtSomeTime(viewAt, state, chamber));
  judge(audit, 'views', 'GET …/ideas', differencesOf(ideaViews(state), ideas.body));
  const allocationsAt = (now: Millis) => allocationsView(state, now);
  judge(audit, 'views', 'GET …/allocations', differencesAtSomeTime(allocationsAt, state, allocations));
}

function judge(
  { ledger }: ChamberAudit,
  check: 'preview' | 'views',
  question: string,
  differing: readonly string[],
): void {
  const sentence = `${question} is not what the lines say: ${differing.join(', ')}`;
  ledger.judge(check, differing.length === 0, { eventIds: [], sentence });
}

/** Of an object the members that are known here count, of a list every item. */
function differencesOf(expected: object, actual: unknown): readonly string[] {
  const isList = Array.isArray(expected);
  if (typeof actual === 'string') return [actual];
  if (typeof actual !== 'object' || actual === null || Array.isArray(actual) !== isList)
    return ['it is of another form'];
  return differences(expected, actual, { isExact: isList });
}

const STEP_MILLIS = 250;
/** A Date header is to the second and may be a second old. */
const EARLIER_MILLIS = 1_500;
const LATER_MILLIS = 2_500;

/** Phase and turn follow the clock: the answer is right if it was so at some moment around its Date header. */
function differencesAtSomeTime(
  viewAt: (now: Millis) => object,
  { deadlines }: ChamberState,
  { body, at }: ServiceAnswer,
): readonly string[] {
  const moments = [at, ...Object.values(deadlines).filter((deadline) => Math.abs(deadline - at) < LATER_MILLIS)];
  for (let now = at - EARLIER_MILLIS; now < at + LATER_MILLIS; now += STEP_MILLIS) moments.push(now);
  const found = moments.map((now) => differencesOf(viewAt(now), body));
  return found.sort((a, b) => a.length - b.length)[0] ?? [];
}
