// Plays a chamber from LOBBY to COMMITTED in under 15 seconds: five agents, signed HTTP, a stream, a chain. The agents set the pace; the
// deadlines are minutes away. Succeeds only if the chain has the root of the streamed lines and a token for every graduate.
import { once, setMaxListeners } from 'node:events';
import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ChamberState } from '../../projections/chamber.ts';
import { tallies } from '../../projections/graduation.ts';
import { auditFile } from '../audit/audit.ts';
import { Agent } from '../client/agent.ts';
import { ForumClient } from '../client/forum-client.ts';
import { CAST, play } from '../demo/cast.ts';
import {
  type DemoServices,
  followUntilSettled,
  openCluster,
  openDemoServices,
  readChain,
  type SettledChamber,
} from '../demo/services.ts';
import { paint } from '../process/terminal.ts';
import { linkedSignal } from '../reading/waiting.ts';
import { interruptible } from './environment.ts';
import { narrate, phaseHeading, tickerOf } from './narrate.ts';
import { toDeadlines } from './values.ts';

const PHASE_LENGTHS = ['5m', '5m', '5m', '5m', '5m'] as const;
const PACE = { rounds: { proposal: 1, debate: 2 }, turnSeconds: 30 } as const;
const DEMO_MILLIS_MAX = 55_000;

/** Resolves to the exit code. `isWatched` keeps the service running until interrupted. With several nodes, kills one during the debate. */
export async function demoMain(isWatched = false, nodes = 1): Promise<number> {
  return await interruptible(new Error('interrupted'), async (interrupted) => {
    const services = await (nodes === 1 ? openDemoServices() : openCluster(nodes));
    const { signal, release } = linkedSignal(interrupted, DEMO_MILLIS_MAX);
    // Every agent adds listeners, which together exceed Node's limit of 10.
    setMaxListeners(0, signal);
    try {
      console.log(`The service listens on ${services.baseUrl}, ${services.description}.`);
      if (isWatched) console.log(`Watch it in a browser: ${paint('bold', `${services.baseUrl}/chambers/1`)}`);
      const exitCode = await playDemo(services, signal);
      if (isWatched) {
        console.log(`\nThe page stays at ${services.baseUrl}/chambers/1 until you press Ctrl-C.`);
        if (!interrupted.aborted) await once(interrupted, 'abort');
      }
      return exitCode;
    } catch (error) {
      throw signal.aborted ? signal.reason : error;
    } finally {
      release();
      await services.close();
    }
  });
}

async function playDemo({ baseUrl, relayerUrl, killNode }: DemoServices, signal: AbortSignal): Promise<number> {
  const players = CAST.map((character) => ({ character, agent: Agent.generate(baseUrl) }));
  const names = new Map(players.map(({ character, agent }) => [agent.did, character.name]));
  for (const [index, { character, agent }] of players.entries()) {
    const { name, personality } = character;
    const walletAddress = `0x${String(index + 1).repeat(40)}`;
    await agent.register({
      walletAddress,
      operatorEmail: `${name.toLowerCase()}@example.org`,
      personality,
      label: name,
    });
    console.log(`${name.padEnd(8)} ${personality.style.padEnd(24)} ${agent.did}`);
  }
  const [host] = players as [(typeof players)[number]];
  const { chamberId } = await host.agent.createChamber({
    name: 'What shall we build together?',
    minBackersForGraduation: 3,
    ...PACE,
    ...toDeadlines(PHASE_LENGTHS, Date.now()),
  });
  for (const { agent } of players) await agent.joinChamber(chamberId);
  await host.agent.start(chamberId);

  const { forum } = host.agent;
  console.log(phaseHeading('LOBBY'));
  const [settled] = await Promise.all([
    followUntilSettled(forum.lines(chamberId, { signal }), (event, state) =>
      console.log(narrate(event, state, (did) => names.get(did) ?? did)),
    ),
    narratePhases(host.agent, chamberId, { signal, killNode }),
    ...players.map(({ agent, character }) => play(agent, character, chamberId, signal)),
  ]);
  const isProven = compareWithChain(settled, await readChain(new ForumClient(relayerUrl), settled.state));
  // The service and its chain end with the demo; the file of lines remains.
  const file = join(await mkdtemp(join(tmpdir(), 'chambers-demo-lines-')), `chamber-${chamberId}.ndjson`);
  await writeFile(file, `${settled.lines.join('\n')}\n`);
  const { verdict } = await auditFile(file, {});
  console.log(`\naudited: ${verdict}. Verify it yourself: npm run --silent audit -- ${file}`);
  return isProven && verdict === 'verified' ? 0 : 1;
}

async function narratePhases(
  { forum }: Agent,
  chamberId: number,
  { signal, killNode }: { readonly signal: AbortSignal; readonly killNode: DemoServices['killNode'] },
): Promise<void> {
  for await (const { phase, state } of forum.watch(chamberId, { signal })) {
    if (phase !== 'LOBBY') console.log(phaseHeading(phase));
    if (phase === 'DEBATE' && killNode !== undefined) console.log(`      ${paint('red', await killNode())}`);
    if (phase === 'COMMITTED') console.log(['\n      Tally', ...tally(state)].join('\n'));
  }
}

function tally(state: ChamberState): readonly string[] {
  return [...tallies(state)].map(([ideaId, { backers, totalBps }]) => {
    const verdict = backers >= state.minBackersForGraduation ? paint('green', 'graduates') : 'stays an idea';
    return `      ${tickerOf(state, ideaId).padEnd(8)} ${String(totalBps).padStart(6)} bps  ${backers} ${backers === 1 ? 'backer ' : 'backers'}  ${verdict}`;
  });
}

function compareWithChain({ root }: SettledChamber, chain: Awaited<ReturnType<typeof readChain>>): boolean {
  const isSame = root === chain.root;
  const verdict = isSame ? paint('green', 'the same') : paint('red', 'NOT the same');
  console.log(`\nroot on the chain            ${chain.root}`);
  console.log(`root of the streamed lines   ${root}   ${verdict}`);
  for (const { ticker, address } of chain.tokens) {
    console.log(`token of ${ticker.padEnd(10)}          ${address ?? paint('red', 'MISSING')}`);
  }
  return isSame && chain.tokens.every(({ address }) => address !== null);
}
