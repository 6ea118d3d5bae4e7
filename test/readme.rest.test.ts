// The READMEs are true: what they play through whole chambers.
import { expect, it } from 'vitest';
import type { ForumClient } from '../src/client/index.ts';
import { newAgent, newChamber, PHASE_MILLIS } from './client/live-service.ts';
import { advanceChain } from './client/play-chamber.ts';
import { eventually } from './kit/until.ts';
import { commandsOf, linesOf, open, paste, pasteCommands, programsOf, SLOW, textOf } from './pasted.ts';

it('README.md plays a whole chamber on the command line', SLOW, async () => {
  const live = await open({ CHAIN: '' });
  // Long phases, which end when their moves are made, however long the commands take.
  const commands = commandsOf(textOf('README.md'), 'chamber create').replaceAll(/=\d+s\b/g, '=1h');
  const pasted = pasteCommands(commands, live.baseUrl, live.sharedTimeEnv);
  await Promise.race([pasted, eventually(() => live.forum.chamber(1), SLOW.timeout)]);
  const turns = ['chamber.passed', 'chamber.passed'];
  await Promise.race([
    pasted,
    endPhases(live, ['chamber.joined', ...turns, 'allocation.committed'])
      .then(() => advanceChain(live))
      .then(() => endPhases(live, ['allocation.revealed'])),
  ]);
  const { output } = await pasted;
  expect(output).toMatch(/^COMMITTED$/m);
  expect(output).toMatch(/\b0 broken\b/);
});
it('src/client/README.md has an agent live through a chamber', SLOW, async () => {
  const [LIVING_AGENT = ''] = programsOf(textOf('src/client/README.md'));
  expect(linesOf(LIVING_AGENT)).toBeLessThanOrEqual(18);
  const live = await open();
  const { chamberId } = await (await newAgent(live)).createChamber(newChamber(live.now()));
  const agent = paste(LIVING_AGENT, live.baseUrl, chamberId);
  const moves = ['chamber.joined', 'chamber.passed', 'chamber.debated', 'allocation.committed'];
  const types = await endPhases(live, moves, agent.advance);
  for await (const { type } of live.forum.events(chamberId, { after: types.length })) {
    types.push(type);
    if (type === 'allocation.revealed') break;
  }
  await agent.kill();
  expect(new Set(types)).toEqual(new Set(['chamber.created', 'chamber.proposed', ...moves, 'allocation.revealed']));
});

/** Waits for events of these types, in this order, and ends the phase after each. Returns all types until then. */
async function endPhases(
  { forum, advance }: { readonly forum: ForumClient; advance(millis: number): void },
  awaited: readonly string[],
  onAdvance: (millis: number) => void = () => {},
): Promise<string[]> {
  const types: string[] = [];
  let ended = 0;
  for await (const { type } of forum.events(1)) {
    types.push(type);
    if (type !== awaited[ended]) continue;
    advance(PHASE_MILLIS);
    onAdvance(PHASE_MILLIS);
    ended++;
    if (ended === awaited.length) break;
  }
  return types;
}
