// Runs the parts of the READMEs that play whole chambers.
import { expect, it } from 'vitest';
import { ForumClient } from '../src/client/index.ts';
import { newAgent, newChamber, PHASE_MILLIS } from './client/live-service.ts';
import { startProcess } from './kit/service-process.ts';
import { eventually } from './kit/until.ts';
import { commandsOf, linesOf, open, paste, pasteCommands, programsOf, SLOW, textOf } from './pasted.ts';

/** The moves end the phases, so that the machine's clock suffices. */
it('the commands of README.md play a whole chamber with two agents', { timeout: 240_000 }, async () => {
  const { url } = await startProcess(':memory:', { CHAIN: '', PUBLIC_URL: '' });
  const forum = new ForumClient(url);
  const [ADA, BOB] = ['data/ada.json', 'data/bob.json'].map((key) => commandsOf(textOf('README.md'), key));
  const ada = pasteCommands(ADA as string, url);
  const isJoined = async () => expect(await forum.chamber(1)).toMatchObject({ members: [expect.any(String)] });
  await Promise.race([ada, eventually(isJoined, 120_000)]);
  const [{ output }] = await Promise.all([ada, pasteCommands(BOB as string, url)]);
  expect(output).toMatch(/^COMMITTED$/m);
  expect(output).toMatch(/\b0 broken\b/);
  const { members, ideas } = await forum.chamber(1);
  expect([members.length, ideas.map(({ ticker }) => ticker)]).toEqual([2, ['RAIN']]);
});

it('the agent of src/client/README.md takes part in a whole chamber', SLOW, async () => {
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

/** Waits for events of the given types in order, and ends the phase after each. Returns the types of all events until then. */
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
