// A chamber from lobby to committed in under a minute: five agents, signed HTTP, a stream, a chain. Succeeds only if the
// root on the chain is the one that the streamed lines give, and every graduate has its token.
import './require-node.ts';
import { setMaxListeners } from 'node:events';
import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { tallies } from '../projections/allocations.ts';
import type { ChamberState } from '../projections/chamber.ts';
import { narrate, tickerOf } from './cli/narrate.ts';
import { toDeadlines } from './cli/values.ts';
import { Agent } from './client/agent.ts';
import { CAST } from './demo/cast.ts';
import { play } from './demo/player.ts';
import { openStage } from './demo/stage.ts';
import { type OnChain, readChain, type Testimony, witness } from './demo/witness.ts';
import { exitWithOutput, paint } from './terminal.ts';

const PHASE_LENGTHS = ['3s', '6s', '9s', '5s', '5s'] as const;
const DEMO_MILLIS_MAX = 58_000;

/** Runs the demo and prints it; resolves to the exit code. */
export async function demoMain(): Promise<number> {
  const stop = new AbortController();
  // Every agent listens to it.
  setMaxListeners(0, stop.signal);
  const timer = setTimeout(() => stop.abort(new Error('the demo took too long')), DEMO_MILLIS_MAX);
  const interrupt = () => stop.abort(new Error('interrupted'));
  process.once('SIGINT', interrupt).once('SIGTERM', interrupt);
  const stage = await openStage();
  try {
    console.log(`The service listens on ${stage.baseUrl}, with a database and a chain of its own.`);
    return await perform(stage.baseUrl, stop.signal);
  } catch (error) {
    throw stop.signal.aborted ? stop.signal.reason : error;
  } finally {
    clearTimeout(timer);
    await stage.close();
    process.off('SIGINT', interrupt).off('SIGTERM', interrupt);
  }
}

async function perform(baseUrl: string, signal: AbortSignal): Promise<number> {
  const players = CAST.map((character) => ({ character, agent: Agent.generate(baseUrl) }));
  const names = new Map(players.map(({ character, agent }) => [agent.did, character.name]));
  for (const { character, agent } of players) {
    const { name, walletAddress, personality } = character;
    await agent.register({ walletAddress, operatorEmail: `${name.toLowerCase()}@example.org`, personality });
    console.log(`${name.padEnd(8)} ${personality.style.padEnd(24)} ${agent.did}`);
  }
  const [host] = players as [(typeof players)[number]];
  const { chamberId } = await host.agent.createChamber({
    name: 'What shall we build together?',
    minBackersForGraduation: 3,
    ...toDeadlines(PHASE_LENGTHS, Date.now()),
  });
  for (const { agent } of players) await agent.joinChamber(chamberId);

  const { forum } = host.agent;
  const [testimony] = await Promise.all([
    witness({ forum, chamberId, signal }, (event, state) =>
      console.log(narrate(event, state, (did) => names.get(did) ?? did)),
    ),
    narratePhases(host.agent, chamberId, signal),
    ...players.map(({ agent, character }) => play(agent, character, { chamberId, signal })),
  ]);
  const exitCode = conclude(testimony, await readChain(forum, testimony.state));
  console.log(`\nTrust nobody: npm run --silent audit -- ${await keepLines(testimony)}`);
  return exitCode;
}

async function narratePhases({ forum }: Agent, chamberId: number, signal: AbortSignal): Promise<void> {
  for await (const { phase, state } of forum.watch(chamberId, { signal })) {
    console.log(`\n${paint('bold', `── ${phase} ${'─'.repeat(60 - phase.length)}`)}`);
    if (phase === 'COMMITTED') console.log(['\n      Tally', ...tally(state)].join('\n'));
  }
}

function tally(state: ChamberState): readonly string[] {
  return [...tallies(state)].map(([ideaId, { backers, totalBps }]) => {
    const verdict = backers >= state.minBackersForGraduation ? paint('green', 'graduates') : 'stays an idea';
    return `      ${tickerOf(state, ideaId).padEnd(8)} ${String(totalBps).padStart(6)} bps  ${backers} backers  ${verdict}`;
  });
}

function conclude({ root }: Testimony, chain: OnChain): number {
  const isSame = root === chain.root;
  const verdict = isSame ? paint('green', 'the same') : paint('red', 'NOT the same');
  console.log(`\nroot on the chain            ${chain.root}`);
  console.log(`root of the streamed lines   ${root}   ${verdict}`);
  for (const { ticker, address } of chain.tokens) {
    console.log(`token of ${ticker.padEnd(10)}          ${address ?? paint('red', 'MISSING')}`);
  }
  return isSame && chain.tokens.every(({ address }) => address !== null) ? 0 : 1;
}

/** Keeps the lines in a file, since the service and its chain end with the demo; returns its path. */
async function keepLines({ lines, state }: Testimony): Promise<string> {
  const file = join(await mkdtemp(join(tmpdir(), 'chambers-demo-lines-')), `chamber-${state.chamberId}.ndjson`);
  await writeFile(file, `${lines.join('\n')}\n`);
  return file;
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  exitWithOutput();
  process.exitCode = await demoMain().catch((error: unknown) => {
    console.error(`The demo failed: ${error instanceof Error ? error.message : String(error)}`);
    return 1;
  });
}
