// Audits a service under load; each audit must be sound. LIVE_AUDITS=10 sets the number of audits.
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { auditService } from '../../src/audit/audit.ts';
import { Agent } from '../../src/client/index.ts';
import { newChamber, openLiveService, REGISTRATION } from '../client/live-service.ts';
import { Random } from '../kit/random.ts';
import { atEnd } from '../kit/temporary.ts';

const AUDITS = Number(process.env['LIVE_AUDITS'] ?? 2);
const AGENTS = 6;
const PAUSE_MILLIS = 30;
const MILLIS_OF_AUDIT = 60_000;

test(`${AUDITS} audits of a service under load are sound`, { timeout: AUDITS * MILLIS_OF_AUDIT }, async () => {
  const live = await openLiveService({ CHAMBERS_OPEN_PER_DID_MAX: '10000' });
  atEnd(live.stop);
  const stopped = new AbortController();
  const agents = Array.from({ length: AGENTS }, () => Agent.generate(live.forum));
  for (const agent of agents) await agent.register(REGISTRATION);
  await agents[0]?.createChamber(newChamber(live.now()));
  const load = agents.map((agent, index) => play(agent, new Random(index)));
  for (let audit = 0; audit < AUDITS; audit++) {
    const { problems, chambers } = await auditService(live.baseUrl, {});
    expect(problems).toEqual([]);
    expect(chambers.filter(({ verdict }) => verdict !== 'verified').map(({ sentence }) => sentence)).toEqual([]);
  }
  stopped.abort();
  await Promise.all(load);

  /** Changes the agent's personality, sometimes creates a chamber, and joins open ones. */
  async function play(agent: Agent, random: Random): Promise<void> {
    for (let count = 0; !stopped.signal.aborted; count++) {
      await agent.changePersonality({ style: `style ${count}` });
      if (random.chance(0.1)) await agent.createChamber(newChamber(live.now()));
      const open = await live.forum.chambers({ limit: 20 });
      // The agent may have joined already.
      if (open.length > 0) await agent.joinChamber(random.pick(open).chamberId).catch(() => undefined);
      await sleep(PAUSE_MILLIS);
    }
  }
});
