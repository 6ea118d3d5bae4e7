// Phases last an hour and end when the test moves the clock, which the service and the clients share.
import { beforeEach, describe, expect, it } from 'vitest';
import type { Agent, Phase } from '../../src/client/index.ts';
import { newAgent, newChamber, PHASE_MILLIS, sharedLiveService } from './live-service.ts';

const live = sharedLiveService();
let ada: Agent;
let bob: Agent;
beforeEach(async () => {
  [ada, bob] = [await newAgent(live, live.sharedTime), await newAgent(live, live.sharedTime)];
});

describe('turns', () => {
  it('turns rotate, each with the current state, and end with the debate', async () => {
    const chamberId = await openChamber();
    const seen: string[] = [];
    const play = async (agent: Agent, name: string) => {
      for await (const { phase, state } of agent.turns(chamberId)) {
        seen.push(`${phase} ${name} after ${state.lastEventId}`);
        // Each agent passes once per phase, so that Ada's second turn lasts until the phase ends.
        if (state.turns.phase !== phase || name === 'Bob') await agent.pass(chamberId);
        else live.advance(PHASE_MILLIS);
      }
    };
    const played = Promise.all([play(ada, 'Ada'), play(bob, 'Bob')]);
    await live.sleeping(2);
    expect(seen).toEqual([]);
    live.advance(PHASE_MILLIS);
    await played;
    expect(seen).toEqual([
      'PROPOSAL Ada after 3',
      'PROPOSAL Bob after 4',
      'PROPOSAL Ada after 5',
      'DEBATE Ada after 5',
      'DEBATE Bob after 6',
      'DEBATE Ada after 7',
    ]);
    expect((await ada.forum.chamber(chamberId)).phase).toBe('ALLOCATE_COMMIT');
  });

  it('turns are yielded only to the current holder, however long the log is', async () => {
    const chamberId = await openChamber();
    live.advance(PHASE_MILLIS);
    for (let round = 0; round < 3; round++) {
      await ada.pass(chamberId);
      await bob.pass(chamberId);
    }
    for await (const { phase, state, endsAt } of ada.turns(chamberId)) {
      expect({ phase, lastEventId: state.lastEventId }).toEqual({ phase: 'PROPOSAL', lastEventId: 9 });
      expect(endsAt).toBe(state.deadlines.proposalDeadline);
      break;
    }
  });

  it('a turn that expires by the clock passes to the next member', async () => {
    const turnSeconds = 600;
    const { chamberId } = await ada.createChamber({ ...newChamber(live.now()), turnSeconds });
    for (const agent of [ada, bob]) await agent.joinChamber(chamberId);
    const turns = bob.turns(chamberId);
    const turn = turns.next();
    await live.sleeping(1);
    live.advance(PHASE_MILLIS);
    await live.sleeping(1);
    live.advance(turnSeconds * 1000);
    const { state, endsAt } = (await turn).value ?? expect.unreachable();
    expect(state.lastEventId).toBe(3);
    expect(endsAt).toBe(state.deadlines.lobbyDeadline + 2 * turnSeconds * 1000);
    await turns.return();
  });

  it('turns end at once when PROPOSAL and DEBATE are over', async () => {
    const chamberId = await openChamber();
    live.advance(3 * PHASE_MILLIS);
    expect(await ada.turns(chamberId).next()).toEqual({ done: true, value: undefined });
  });
});

describe('phases', () => {
  it('phases are yielded from the current one on', async () => {
    const { chamberId } = await ada.createChamber(newChamber(live.now(), [PHASE_MILLIS, PHASE_MILLIS, 0]));
    const seen: Phase[] = [];
    for await (const { phase } of ada.forum.watch(chamberId)) {
      seen.push(phase);
      if (phase === 'ALLOCATE_REVEAL') break;
      // The watcher begins to wait after this code, so only a later move of the clock wakes it.
      void live.sleeping(1).then(() => live.advance(PHASE_MILLIS));
    }
    expect(seen).toEqual(['LOBBY', 'PROPOSAL', 'ALLOCATE_COMMIT', 'ALLOCATE_REVEAL']);
  });

  it('phases stop with the signal’s reason', async () => {
    const chamberId = await openChamber();
    const stop = new AbortController();
    const seen: Phase[] = [];
    const watching = async () => {
      for await (const { phase } of ada.forum.watch(chamberId, { signal: stop.signal })) {
        seen.push(phase);
        stop.abort(new Error('seen enough'));
      }
    };
    await expect(watching()).rejects.toThrow('seen enough');
    expect(seen).toEqual(['LOBBY']);
  });
});

/** A chamber that both agents have joined, so that its log has three events. */
async function openChamber(): Promise<number> {
  const { chamberId } = await ada.createChamber(newChamber(live.now()));
  for (const agent of [ada, bob]) await agent.joinChamber(chamberId);
  return chamberId;
}
