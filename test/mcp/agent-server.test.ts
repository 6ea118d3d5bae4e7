// An agent's MCP server as a process, with a service whose clock the test sets: one process per protocol version.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Progress } from '@modelcontextprotocol/client';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Agent } from '../../src/client/index.ts';
import { newAgent, newChamber, PHASE_MILLIS, REGISTRATION, sharedLiveService } from '../client/live-service.ts';
import { until } from '../kit/until.ts';
import { CALL_MILLIS, expectOneComment } from './killed-server.ts';
import { ERAS, type SeatProcess, spawnSeat } from './seat-process.ts';

const live = sharedLiveService();

/** A chamber in LOBBY with another member, who will have the first turn. */
async function openedByAnother() {
  const other = await newAgent(live);
  const { chamberId } = await other.createChamber(newChamber(live.now()));
  await other.joinChamber(chamberId);
  return { other, chamberId };
}

describe.each(ERAS)('in the %s era', (era) => {
  let seat: SeatProcess;
  const folder = mkdtempSync(join(tmpdir(), 'seat-'));
  beforeAll(async () => {
    const keyFile = join(folder, 'agent.json');
    await (await Agent.fromKeyFile(live.baseUrl, keyFile)).register(REGISTRATION);
    seat = await spawnSeat(era, { url: live.baseUrl, keyFile, env: live.sharedTimeEnv });
  });
  afterAll(async () => {
    await seat?.kill();
    rmSync(folder, { recursive: true });
  });

  it('the response to tools/list is short', async () => {
    const listings = () =>
      seat
        .bytes()
        .split('\n')
        .filter((line) => line.includes('inputSchema'));
    const before = listings().length;
    expect((await seat.client.listTools()).tools).toHaveLength(16);
    const [listing, ...others] = listings().slice(before);
    expect(others).toEqual([]);
    expect(Buffer.byteLength(String(listing))).toBeLessThan(16_300);
  });

  it('the server accepts null as arguments of a tool without required arguments', async () => {
    expect(await seat.nullArguments('todo')).toMatchObject({ todo: expect.any(Array) });
  });

  it('wait reports progress and returns once the other agent passes', async () => {
    const { other, chamberId } = await openedByAnother();
    await seat.call('join', { chamberId });
    live.advance(PHASE_MILLIS);
    const progress: number[] = [];
    const onprogress = ({ total = 0 }: Progress) => void progress.push(total);
    const waiting = seat.client.callTool(
      { name: 'wait', arguments: { chamberId, seconds: 300 } },
      { onprogress, timeout: 60_000 },
    );
    await until(() => progress.length > 0);
    await other.pass(chamberId);
    const { structuredContent } = await waiting;
    expect(structuredContent).toMatchObject({ due: true, todo: [{ chamberId, must: 'pass', may: ['propose'] }] });
    expect(progress).toContain(300);
  });

  it('the server reports changes in a chamber that the client subscribes to', async () => {
    const { other, chamberId } = await openedByAnother();
    await seat.call('join', { chamberId });
    const uri = `chamber://${chamberId}`;
    expect((await seat.client.listResources()).resources).toContainEqual(expect.objectContaining({ uri }));
    const updated = new Promise<string>((resolve) => {
      seat.client.setNotificationHandler('notifications/resources/updated', ({ params }) => resolve(params.uri));
    });
    if (era === 'legacy') await seat.client.subscribeResource({ uri });
    else await seat.client.listen({ resourceSubscriptions: [uri] });
    const third = await newAgent(live);
    await third.joinChamber(chamberId);
    live.advance(PHASE_MILLIS);
    await other.pass(chamberId);
    expect(await updated).toBe(uri);
    const { contents } = await seat.client.readResource({ uri });
    expect(contents).toMatchObject([{ mimeType: 'text/markdown', text: expect.stringContaining('## LOBBY') }]);
  });

  it('verify audits a chamber and returns the command that repeats the audit', async () => {
    const { chamberId } = await openedByAnother();
    await seat.call('join', { chamberId });
    const page = `${live.baseUrl}/chambers/${chamberId}`;
    expect(await seat.call('verify', { chamberId })).toMatchObject({
      verdict: 'verified',
      checks: { signature: 'verified' },
      root: expect.stringMatching(/^0x[0-9a-f]{64}$/),
      merkleRoot: null,
      links: { page, lines: `${page}/events`, outcome: `${page}/outcome` },
      repeat: `chambers audit ${live.baseUrl} --chamber=${chamberId}`,
    });
  });
});

it('a call that is repeated after its server was killed and restarted creates one comment', () =>
  expectOneComment(live, [CALL_MILLIS / 2]));
