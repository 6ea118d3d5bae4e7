// Tests notes on a chamber's stream: only readers that ask for them get notes, after the earlier lines, and each change once.
import { expect, it } from 'vitest';
import { PhaseNotes } from '../../src/stream/notes.ts';
import { deadlinesFrom, recordCommit } from '../kit/chambers.ts';
import { START } from '../kit/clock.ts';
import { type Consumer, consume, openSource, subscribe, take } from '../kit/consumers.ts';
import { call, newAgent, type Running, run } from '../kit/service.ts';
import type { Signer } from '../kit/signer.ts';

const fail = (error: unknown) => {
  throw error;
};
const iso = (millis: number) => new Date(millis).toISOString();

async function paced(running: Running, changes: object = {}) {
  const [ann, bob] = [await newAgent(running), await newAgent(running)] as const;
  const body = {
    name: 'Test',
    ...deadlinesFrom(running.clock.read()),
    turnSeconds: 60,
    rounds: { proposal: 1, debate: 1 },
    ...changes,
  };
  const { chamberId } = await call(running, ann, ['POST', '/chambers', body]);
  const act = (by: Signer, path: string, body: object = {}) =>
    call(running, by, ['POST', `/chambers/${chamberId}/${path}`, body]);
  for (const by of [ann, bob]) await act(by, 'join');
  return { id: chamberId, ann, bob, act, path: `/chambers/${chamberId}/stream` };
}

const notes = ({ lines }: Consumer) => lines.map((line) => JSON.parse(line)).filter((message) => 'note' in message);
/** Returns the received messages in short form: the ids of events and the kinds of notes. */
const order = ({ lines }: Pick<Consumer, 'lines'>) =>
  lines.map((line) => {
    const { eventId, note, to } = JSON.parse(line);
    return note === undefined ? eventId : (to ?? note);
  });

it('a reader gets a note when it has caught up, and one for each phase change after the earlier lines', async () => {
  const running = await run();
  const { id, ann, bob, act, path } = await paced(running);
  const consumer = await consume(running, `${path}?after=0&notes=1`);
  await consumer.until(4);
  expect(notes(consumer)).toEqual([{ note: 'caught-up', eventId: 3, phase: 'LOBBY', turn: null, now: iso(START) }]);
  await act(ann, 'start');
  await consumer.until(6);
  for (const by of [ann, bob, ann, bob]) await act(by, 'pass');
  await consumer.until(12);
  await recordEnd(running, id);
  await consumer.until(15);
  expect(order(consumer)).toEqual([
    1,
    2,
    3,
    'caught-up',
    4,
    'PROPOSAL',
    5,
    6,
    'DEBATE',
    7,
    8,
    'ALLOCATE_COMMIT',
    'ALLOCATE_REVEAL',
    9,
    'COMMITTED',
  ]);
  expect(notes(consumer).at(1)).toEqual({ note: 'phase', from: 'LOBBY', to: 'PROPOSAL', at: iso(START) });
  const [committed] = consumer.lines.flatMap((line) =>
    line.includes('"chamber.committed"') ? [JSON.parse(line)] : [],
  );
  expect(notes(consumer).at(-1)).toEqual({ note: 'phase', from: 'ALLOCATE_REVEAL', to: 'COMMITTED', at: committed.ts });

  const late = await consume(running, `${path}?after=7&notes=1`);
  await late.until(3);
  expect(order(late)).toEqual([8, 9, 'caught-up']);
});

/** Lets the phases end at their deadlines, without commitments, and records the root on the chain. */
async function recordEnd(running: Running, id: number): Promise<void> {
  running.clock.set(Date.parse(deadlinesFrom(START).allocateRevealDeadline));
  await recordCommit(running.service.forum, id);
}

it('the note of a phase precedes its lines, even if the phase began and ended within one millisecond', async () => {
  const running = await run();
  const { id, ann, bob, act } = await paced(running);
  await act(ann, 'start');
  const { forum } = running.service;
  const sent: string[] = [];
  const send = (text: string) => void sent.push(text);
  const phaseNotes = new PhaseNotes(forum, { chamberId: id, after: 0, head: 4, send, fail });
  const read = async (after: number) => {
    const page = await forum.store.log.readPage(id, after, 100);
    for (const part of phaseNotes.partsOf(page)) sent.push(typeof part === 'string' ? part : part.ndjson.toString());
    await phaseNotes.atHead(after + page.count);
  };
  await read(0);
  for (const by of [ann, bob, ann, bob]) await act(by, 'pass');
  await read(4);
  phaseNotes.stop();
  expect(order({ lines: sent.join('\n').split('\n').filter(Boolean) })).toEqual([
    1,
    2,
    3,
    4,
    'caught-up',
    5,
    6,
    'DEBATE',
    7,
    8,
    'ALLOCATE_COMMIT',
  ]);
});

it('a page, e.g. with lines of another node, is delivered once the state includes its lines', async () => {
  const running = await run();
  const { id, ann, bob, act } = await paced(running);
  await act(ann, 'start');
  const { forum } = running.service;
  const before = await forum.chamber(id);
  let isBehind = true;
  const behind = {
    now: () => forum.now(),
    chamberInMemory: () => (isBehind ? before : forum.chamberInMemory(id)),
    chamber: async () => {
      isBehind = false;
      return forum.chamber(id);
    },
  };
  const phaseNotes = new PhaseNotes(behind, { chamberId: id, after: 4, head: 4, send: () => {}, fail });
  await phaseNotes.atHead(4);
  isBehind = true;
  for (const by of [ann, bob, ann, bob]) await act(by, 'pass');
  const page = await forum.store.log.readPage(id, 4, 100);
  await phaseNotes.whenIncluded(page);
  const parts = [...phaseNotes.partsOf(page)];
  phaseNotes.stop();
  expect(parts.map((part) => (typeof part === 'string' ? JSON.parse(part).to : part.count))).toEqual([2, 'DEBATE', 2]);
});

it('a phase that the clock ends causes a note', async () => {
  const running = await run();
  const lobbyDeadline = iso(START + 300);
  const { path } = await paced(running, { rounds: undefined, lobbyDeadline });
  const consumer = await consume(running, `${path}?notes=1`);
  await consumer.until(1);
  running.clock.advance(300);
  await consumer.until(2);
  expect(order(consumer)).toEqual(['caught-up', 'PROPOSAL']);
  expect(notes(consumer).at(-1)).toMatchObject({ at: lobbyDeadline });
});

it('a stream ends if the chamber can’t be read when a note of its phase is due', async () => {
  const running = await run();
  const { path } = await paced(running, { rounds: undefined, lobbyDeadline: iso(START + 300) });
  const consumer = await consume(running, `${path}?notes=1`);
  const other = await consume(running, path);
  await consumer.until(1);
  const { forum } = running.service;
  const { chamber } = forum;
  Object.assign(forum, { chamber: () => Promise.reject(new Error('the database is unavailable')) });
  running.clock.advance(300);
  expect(await consumer.closed()).toBe(1011);
  Object.assign(forum, { chamber });
  expect(other.closeCode).toBeUndefined();
  const again = await consume(running, `${path}?notes=1`);
  await again.until(1);
});

it('notes are server-sent events without an id', async () => {
  const running = await run();
  const { path } = await paced(running);
  const response = await fetch(`${running.url}${path}?after=2&notes=1`, { headers: { accept: 'text/event-stream' } });
  const reader = (response.body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  while (text.split('\n\n').length < 3) text += (await reader.read()).value;
  await reader.cancel();
  expect(text).toMatch(/^id: 3\ndata: \{.*\}\n\nevent: note\ndata: \{"note":"caught-up","eventId":3,.*\}\n\n$/);
});

it('readers that did not ask for notes get none', async () => {
  const running = await run();
  const { ann, act, path } = await paced(running);
  const [socket, source] = [await consume(running, `${path}?after=0`), await openSource(running, `${path}?after=0`)];
  await act(ann, 'start');
  await act(ann, 'pass');
  await socket.until(5);
  expect(order(socket)).toEqual([1, 2, 3, 4, 5]);
  expect((await take(source, 5)).map(({ id }) => id)).toEqual(['1', '2', '3', '4', '5']);
});

it.each(['/chambers/1/stream?notes=2', '/chambers/1/stream?notes=', '/events?notes=1'])(
  'a request for %s is rejected',
  async (path) => {
    const running = await run();
    await paced(running);
    expect(await subscribe(running, path)).toMatchObject({
      refusal: { status: 400, body: { error: 'FORUM_ERR_VALIDATION' } },
    });
  },
);
