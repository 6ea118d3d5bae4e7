// Tests the checker with histories of stores that, like real nodes, do not report when they wrote a line.
import { beforeEach, describe, expect, it } from 'vitest';
import { deadlinesFrom } from '../kit/chambers.ts';
import { HOUR, START } from '../kit/clock.ts';
import { TestService } from '../kit/test-service.ts';
import { LIMITS } from './simulation/cast.ts';
import { Checker } from './simulation/checker.ts';
import type { History, HistoryRequest, Outcome, Stream } from './simulation/history.ts';

const CHAMBER = 1;
let lines: History['lines'];
let debates: readonly HistoryRequest[];

beforeEach(async () => {
  const service = new TestService();
  const by = await service.agent();
  await service.must('POST', '/chambers', { by, body: { name: 'Test', ...deadlinesFrom(START) } });
  await service.must('POST', '/chambers/1/join', { by });
  service.clock.set(START + 2 * HOUR);
  const requests: HistoryRequest[] = [];
  for (const [index, comment] of ['one', 'two'].entries()) {
    const request = service.prepare('POST', '/chambers/1/debate', { by, body: { comment } });
    const { body } = await service.send(request);
    const { signature = '' } = request.headers;
    const asked = { operation: 'debate', chamberId: CHAMBER, did: by.did, body: { comment }, signature };
    const outcome = { is: 'accepted', event: body } as const;
    requests.push({ id: comment, asked, invokedAt: index * 10, respondedAt: index * 10 + 5, outcome });
  }
  debates = requests;
  const { ndjson } = await service.log.readPage(by.did, 0, 9);
  lines = new Map<Stream, readonly string[]>([
    [CHAMBER, await service.lines(CHAMBER)],
    [by.did, ndjson.toString().split('\n').slice(0, -1)],
  ]);
});

function problemsOf(requests: readonly HistoryRequest[], changes: Partial<History> = {}): readonly string[] {
  return new Checker().check({ requests, lines, limits: LIMITS, isComplete: false, ...changes });
}

function debate(index: number, changes: Partial<HistoryRequest> = {}): HistoryRequest {
  return { ...(debates[index] as HistoryRequest), ...changes };
}

function read(lastEventId: number, invokedAt: number): HistoryRequest {
  const outcome: Outcome = { is: 'read', lastEventId };
  return { id: 'read', asked: { stream: CHAMBER }, invokedAt, respondedAt: invokedAt + 1, outcome };
}

describe('the checker', () => {
  it('the checker accepts a consistent history', () => {
    expect(problemsOf([debate(0), debate(1), read(4, 20), read(3, 10)])).toEqual([]);
  });

  it('the checker detects an accepted command that is not in the log', () => {
    const lost = new Map(lines).set(CHAMBER, (lines.get(CHAMBER) ?? []).slice(0, -1));
    expect(problemsOf([debate(0), debate(1)], { lines: lost })).toEqual(['two was accepted, but is not in the log']);
  });

  it('the checker detects commands that are logged in a different order from their responses', () => {
    const requests = [debate(0, { invokedAt: 20, respondedAt: 25 }), debate(1, { invokedAt: 0, respondedAt: 5 })];
    expect(problemsOf(requests)).toEqual(['event 3 of 1 was sent after the response to event 4']);
  });

  it('the checker detects a response with the number of a different event', () => {
    const outcome: Outcome = { is: 'accepted', event: { eventId: 4 } };
    expect(problemsOf([debate(0, { outcome })])).toEqual([expect.stringMatching(/^one got the response event 4/)]);
  });

  it('the checker detects reads that show too few or too many events', () => {
    expect(problemsOf([debate(1), read(3, 20), read(5, 20)])).toEqual([
      'read showed event 3 of 1 after the response to event 4',
      'read showed event 5 of 1, whose head was 4',
    ]);
  });

  it('the checker detects a rejection that was never justified, and a rejected retry', () => {
    const clock = { from: START + 2 * HOUR, to: START + 2 * HOUR };
    const outcome: Outcome = { is: 'rejected', code: 'FORUM_ERR_TURN' };
    const retry = debate(0, { id: 'retry', invokedAt: 20, respondedAt: 21, clock, outcome });
    expect(problemsOf([debate(0), retry])).toEqual([
      'retry was rejected with FORUM_ERR_TURN, which was justified at no moment after the request',
    ]);
  });

  it('the checker detects an altered line', () => {
    const altered = (lines.get(CHAMBER) ?? []).map((line) => line.replace('"one"', '"six"'));
    expect(problemsOf([], { lines: new Map(lines).set(CHAMBER, altered) })).toEqual([
      'event 4 of 1: prev is not the hash of the previous line',
    ]);
  });
});
