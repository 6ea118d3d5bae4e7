import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Agent, Phase } from '../../src/client/index.ts';
import { newAgent, newChamber, openStage, PHASE_MILLIS, type Stage } from './stage.ts';

let stage: Stage;
let ada: Agent;
let bob: Agent;
beforeEach(async () => {
  stage = await openStage();
  [ada, bob] = [await newAgent(stage), await newAgent(stage)];
});
afterEach(() => stage.stop());

describe('turns', () => {
  it('come round, each with the chamber as it is, and end with the debate', async () => {
    const chamberId = await openChamber([200, 400, 400]);
    const told: string[] = [];
    const play = async (agent: Agent, name: string) => {
      for await (const { phase, state } of agent.turns(chamberId)) {
        told.push(`${phase} ${name} after ${state.lastEventId}`);
        // Each passes once a phase, so that Ada's second turn lasts until its end.
        if (state.turn.phase !== phase || name === 'Bob') await agent.pass(chamberId);
      }
    };
    await Promise.all([play(ada, 'Ada'), play(bob, 'Bob')]);
    expect(told).toEqual([
      'PROPOSAL Ada after 3',
      'PROPOSAL Bob after 4',
      'PROPOSAL Ada after 5',
      'DEBATE Ada after 5',
      'DEBATE Bob after 6',
      'DEBATE Ada after 7',
    ]);
    expect((await ada.forum.chamber(chamberId)).phase).toBe('ALLOCATE_COMMIT');
  });

  it('come only to whoever is in turn now, however long the log before', async () => {
    const chamberId = await openChamber();
    stage.advance(PHASE_MILLIS);
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

  it('that run out go on by the clock', async () => {
    const chamber = { ...newChamber(stage.now(), [200, 3_000]), turnSeconds: 1 };
    const { chamberId } = await ada.createChamber(chamber);
    for (const agent of [ada, bob]) await agent.joinChamber(chamberId);
    for await (const { state, endsAt } of bob.turns(chamberId)) {
      expect(state.lastEventId).toBe(3);
      expect(endsAt).toBe(state.deadlines.lobbyDeadline + 2_000);
      break;
    }
  });

  it('end at once where they are over', async () => {
    const chamberId = await openChamber();
    stage.advance(3 * PHASE_MILLIS);
    expect(await ada.turns(chamberId).next()).toEqual({ done: true, value: undefined });
  });
});

describe('phases', () => {
  it('are watched from the present one on', async () => {
    const chamberId = await openChamber([700, 700, 0, 700]);
    const seen: Phase[] = [];
    for await (const { phase } of stage.forum.watch(chamberId)) {
      seen.push(phase);
      if (phase === 'ALLOCATE_REVEAL') break;
    }
    expect(seen).toEqual(['LOBBY', 'PROPOSAL', 'ALLOCATE_COMMIT', 'ALLOCATE_REVEAL']);
  });

  it('stop with the signal’s reason', async () => {
    const chamberId = await openChamber();
    const stop = new AbortController();
    const seen: Phase[] = [];
    const watching = async () => {
      for await (const { phase } of stage.forum.watch(chamberId, { signal: stop.signal })) {
        seen.push(phase);
        stop.abort(new Error('seen enough'));
      }
    };
    await expect(watching()).rejects.toThrow('seen enough');
    expect(seen).toEqual(['LOBBY']);
  });
});

/** A chamber that both have joined, so that its log has three events. */
async function openChamber(phaseMillis: readonly number[] = []): Promise<number> {
  const { chamberId } = await ada.createChamber(newChamber(stage.now(), phaseMillis));
  for (const agent of [ada, bob]) await agent.joinChamber(chamberId);
  return chamberId;
}
