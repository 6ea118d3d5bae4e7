// The README “Waking an agent”: each of its programs passes the agent's turn when pasted.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { Agent, ForumClient } from '../../src/client/index.ts';
import { freePort } from '../../src/demo/free-port.ts';
import { python } from '../kit/python.ts';
import { eventually } from '../kit/until.ts';
import { commandsOf, folder, open, paste, pasteCommands, programsOf, SLOW, textOf } from '../pasted.ts';
import { type LiveService, newChamber, PHASE_MILLIS, REGISTRATION } from './live-service.ts';

const PAGE = textOf('src/client/called/README.md');

/** Makes it the turn of the agent in the page's key file. Returns a function that resolves once that agent has passed. */
async function inTurn(live: LiveService) {
  const agent = await Agent.fromKeyFile(new ForumClient(live.baseUrl, live.sharedTime), join(folder, 'client.json'));
  await agent.register(REGISTRATION);
  const { chamberId } = await agent.createChamber(newChamber(live.now()));
  await agent.joinChamber(chamberId);
  live.advance(PHASE_MILLIS);
  const lastType = async () => (await live.forum.history(chamberId, { after: 2 }).next()).value?.event.type;
  return () => eventually(async () => expect(await lastType()).toBe('chamber.passed'), 60_000);
}

/** Runs the commands until `isEnough` resolves; the last command never ends by itself. */
async function pasteUntil(commands: string, live: LiveService, isEnough: () => Promise<unknown>): Promise<void> {
  const stop = join(folder, `stop-${live.baseUrl.slice(-5)}`);
  const ending = `\nuntil [ -e ${stop} ]; do sleep 0.2; done; kill $!; wait $! || true`;
  const running = pasteCommands(`${commands.trimEnd()}${ending}`, live.baseUrl, live.sharedTimeEnv);
  await Promise.race([running, isEnough()]);
  writeFileSync(stop, '');
  await running;
}

it('the command of chambers watch passes the agent’s turn', SLOW, async () => {
  const live = await open();
  const hasPassed = await inTurn(live);
  await pasteUntil(`${commandsOf(PAGE, 'act.sh').trimEnd()} &`, live, hasPassed);
});

it('the program in JavaScript passes the agent’s turn', SLOW, async () => {
  const live = await open();
  const hasPassed = await inTurn(live);
  const [program = ''] = programsOf(PAGE);
  const pasted = paste(program, live.baseUrl);
  pasted.advance(PHASE_MILLIS);
  await hasPassed();
  await pasted.kill();
});

python('the program in Python passes the agent’s turn', SLOW, async () => {
  const live = await open();
  const hasPassed = await inTurn(live);
  const [program = ''] = PAGE.match(/(?<=```sh\n)PYTHONPATH=[^`]*/) ?? [];
  const own = program.replace('PYTHONPATH=src/client/python ', '').replace("<<'PY'", "<<'PY' &");
  await pasteUntil(own, live, hasPassed);
});

it('the example receiver, run by the program that serves it, passes the agent’s turn', SLOW, async () => {
  const live = await open();
  const hasPassed = await inTurn(live);
  const [program = ''] = PAGE.match(/(?<=```sh\n)export CHAMBERS_URL[^`]*/) ?? [];
  const own = program.replaceAll('9000', `${await freePort()}`).replace("<<'JS'", "<<'JS' &");
  await pasteUntil(own, live, hasPassed);
});
