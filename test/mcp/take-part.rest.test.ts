// Five models take part in a chamber until its root is on a real chain, each following only the prompt's loop. One is killed after it has
// committed, and restarted after the others have revealed.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { TodoView } from '../../projections/todo.ts';
import { Agent, type ChamberEvent } from '../../src/client/index.ts';
import { type LiveService, newChamber, PHASE_MILLIS, REGISTRATION, runLiveService } from '../client/live-service.ts';
import { temporaryFolder } from '../kit/temporary.ts';
import { type Era, type SeatProcess, startSeat } from './seat-process.ts';

const ERA_OF: readonly Era[] = ['legacy', 'modern', 'legacy', 'modern', 'modern'];
const CHAMBER_ID = 1;

it('models take a chamber to COMMITTED, and an allocation survives kill -9', { timeout: 120_000 }, async () => {
  const live = await runLiveService({ CHAIN: '' });
  const folder = temporaryFolder();
  const keyFiles = ERA_OF.map((_, seat) => join(folder, `agent-${seat}.json`));
  const agents = await Promise.all(keyFiles.map((keyFile) => Agent.fromKeyFile(live.baseUrl, keyFile)));
  for (const agent of agents) await agent.register(REGISTRATION);
  await agents[0]?.createChamber(newChamber(live.now()));
  const seats = await Promise.all(
    keyFiles.map((keyFile, n) =>
      startSeat(ERA_OF[n] ?? 'modern', { url: live.baseUrl, keyFile, env: live.sharedTimeEnv }),
    ),
  );

  const killed = seats.pop() as SeatProcess;
  const players = seats.map((seat, n) => play(seat, n));
  const victim = play(killed, 4).catch(() => 'killed');
  await until(live, 'chamber.joined', 5);
  live.advance(PHASE_MILLIS);
  await until(live, 'chamber.proposed', 5);
  live.advance(PHASE_MILLIS);
  await until(live, 'chamber.debated', 5);
  live.advance(PHASE_MILLIS);
  await until(live, 'allocation.committed', 5);
  await killed.kill();
  expect(await victim).toBe('killed');
  live.advance(PHASE_MILLIS);
  await until(live, 'allocation.revealed', 4);
  const again = await startSeat('legacy', { url: live.baseUrl, keyFile: keyFiles[4] ?? '', env: live.sharedTimeEnv });
  await until(live, 'allocation.revealed', 5);
  live.advance(PHASE_MILLIS);

  expect(await Promise.all([...players, play(again, 4)])).toEqual(Array(5).fill('over'));
  const { tally } = await live.forum.allocations(CHAMBER_ID);
  expect(tally).toEqual([1, 2, 3, 4, 5].map((n) => ({ ideaId: `idea-${n}`, backers: 5, totalBps: 10_000 })));

  const secrets = keyFiles.flatMap(secretsOf);
  expect(secrets).toHaveLength(5 * 3 + 5 * 3);
  const bytes = [...seats, killed, again].map((seat) => seat.bytes()).join('');
  expect(bytes).toContain('take_part');
  expect(secrets.filter((secret) => bytes.includes(secret))).toEqual([]);
});

/** Follows the prompt, with a fixed policy instead of a model. */
async function play({ client, call }: SeatProcess, n: number): Promise<'over'> {
  const { messages } = await client.getPrompt({ name: 'take_part', arguments: { chamberId: `${CHAMBER_ID}` } });
  expect(JSON.stringify(messages)).toContain(`chamber ${CHAMBER_ID}`);
  const { phase } = await call<{ phase: string }>('read', { chamberId: CHAMBER_ID });
  if (phase === 'LOBBY') await call('join', { chamberId: CHAMBER_ID });
  let next = 0;
  let hasProposed = false;
  while (true) {
    const { todo, over } = await call<Wait>('wait', { chamberId: CHAMBER_ID, seconds: 1 });
    if (over.length > 0) {
      const ideas = [1, 2, 3, 4, 5].map((slot) => ({ ideaId: `idea-${slot}`, backers: 5, totalBps: 10_000 }));
      expect(over).toMatchObject([{ chamberId: CHAMBER_ID, ideas, committed: 5, revealed: 5 }]);
      return 'over';
    }
    for (const item of todo) {
      // The clock may have advanced in the meantime: the error says so, and wait returns the next duty.
      await act(item).catch((error: Error) => expect(error.message).toMatch(/FORUM_ERR_(PHASE|TURN)/));
    }
  }

  async function act({ chamberId, phase, must }: TodoView): Promise<void> {
    if (must === 'pass' && phase === 'PROPOSAL' && !hasProposed) {
      hasProposed = true;
      await call('propose', { chamberId, name: `Idea ${n}`, ticker: `T${n}`, pass: true });
    } else if (must === 'pass' && phase === 'DEBATE') {
      const read = await call<{ next: number; yourTurn: boolean; you: string }>('read', { chamberId, after: next });
      expect(read).toMatchObject({ yourTurn: true, you: expect.stringMatching(/^A[1-5]$/) });
      next = read.next;
      await call('debate', { chamberId, comment: `I have read up to ${next}.`, pass: true });
    } else if (must === 'pass') {
      await call('debate', { chamberId, pass: true });
    } else if (must === 'commit') {
      const { ideas } = await call<{ ideas: { ideaId: string }[] }>('read', { chamberId, after: next });
      await call('allocate', { chamberId, allocations: ideas.map(({ ideaId }) => ({ ideaId, bps: 2_000 })) });
    }
  }
}

interface Wait {
  readonly todo: readonly TodoView[];
  readonly over: readonly object[];
}

async function until(live: LiveService, type: ChamberEvent['type'], times: number): Promise<void> {
  let seen = 0;
  for await (const event of live.forum.events(CHAMBER_ID)) if (event.type === type && ++seen === times) return;
}

/** The key and the salts of an agent, as hex with any prefix, and as base64. */
function secretsOf(keyFile: string): readonly string[] {
  const folder = `${keyFile}.commitments`;
  const stored = readdirSync(folder).map((name) => JSON.parse(readFileSync(join(folder, name), 'utf8')).salt);
  const { seed } = JSON.parse(readFileSync(keyFile, 'utf8'));
  return [seed, ...stored].flatMap((secret: string) => {
    const bytes = Buffer.from(secret.slice(2), 'hex');
    return [secret.slice(2), bytes.toString('base64').slice(0, 42), bytes.toString('base64url').slice(0, 42)];
  });
}
