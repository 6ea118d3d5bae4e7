// An MCP server that is killed while a comment is being made, and called again after its next start.
import { join } from 'node:path';
import { expect } from 'vitest';
import { Agent } from '../../src/client/index.ts';
import { pause } from '../../src/reading/waiting.ts';
import { type LiveService, newAgent, newChamber, PHASE_MILLIS, REGISTRATION } from '../client/live-service.ts';
import { temporaryFolder } from '../kit/temporary.ts';
import { startSeat } from './seat-process.ts';

/** The approximate duration of a call. */
export const CALL_MILLIS = 60;

/**
 * Kills the server this many milliseconds after each call, and checks that each comment exists once, as the event that the second call
 * returns.
 */
export async function expectOneComment(live: LiveService, killAfterMillis: readonly number[]): Promise<void> {
  const options = { url: live.baseUrl, keyFile: join(temporaryFolder(), 'agent.json'), env: live.sharedTimeEnv };
  const agent = await Agent.fromKeyFile(live.baseUrl, options.keyFile);
  await agent.register(REGISTRATION);
  const { chamberId } = await agent.createChamber(newChamber(live.now()));
  const other = await newAgent(live);
  await other.joinChamber(chamberId);
  await agent.joinChamber(chamberId);
  live.advance(PHASE_MILLIS);
  await other.pass(chamberId);
  await agent.pass(chamberId);
  live.advance(PHASE_MILLIS);
  await other.pass(chamberId);
  const comments = killAfterMillis.map((_, n) => `comment ${n}`);
  let seat = await startSeat('legacy', options);
  for (const [n, comment] of comments.entries()) {
    const call = seat.client.callTool({ name: 'debate', arguments: { chamberId, comment } }).catch(() => 'killed');
    await pause(killAfterMillis[n] ?? 0);
    await seat.kill();
    await call;
    seat = await startSeat('legacy', options);
    const { eventId } = await seat.call<{ eventId: number }>('debate', { chamberId, comment });
    const said: string[] = [];
    for await (const { event } of live.forum.history(chamberId)) {
      if (event.type !== 'chamber.debated') continue;
      said.push(event.payload.comment);
      if (event.eventId === eventId) expect(event.payload.comment).toBe(comment);
    }
    expect(said).toEqual(comments.slice(0, n + 1));
  }
}
