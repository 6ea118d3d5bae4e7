// A chamber from lobby to committed in under a minute: five agents, signed HTTP, a stream, a chain. Succeeds only if the
// root on the chain is the one that the streamed lines give, and every graduate has its token.
import './require-node.ts';
import { setMaxListeners } from 'node:events';
import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { tellEvent } from './cli/tell-event.ts';
import { Agent } from './client/agent.ts';
import { CAST, type Character } from './demo/cast.ts';
import { tellPhase, tellTally } from './demo/narrator.ts';
import { play } from './demo/player.ts';
import { openStage } from './demo/stage.ts';
import { type OnChain, readChain, type Testimony, witness } from './demo/witness.ts';
import { paint } from './terminal.ts';
import { DEADLINES } from './vocabulary/values.ts';

const PHASE_SECONDS = [3, 6, 9, 5, 5] as const;
const DEMO_MILLIS_MAX = 58_000;

/** Runs the demo and prints it; resolves to the exit code. */
export async function demoMain(): Promise<number> {
  const stop = new AbortController();
  // Everybody in the demo listens to it.
  setMaxListeners(0, stop.signal);
  const timer = setTimeout(() => stop.abort(new Error('the demo took too long')), DEMO_MILLIS_MAX);
  const interrupt = () => stop.abort(new Error('interrupted'));
  process.once('SIGINT', interrupt).once('SIGTERM', interrupt);
  const stage = await openStage();
  try {
    console.log(`The service listens on ${stage.baseUrl}, with a database and a chain of its own.`);
    return await perform(stage.baseUrl, stop.signal);
  } finally {
    clearTimeout(timer);
    await stage.close();
    process.off('SIGINT', interrupt).off('SIGTERM', interrupt);
  }
}

async function perform(baseUrl: string, signal: AbortSignal): Promise<number> {
  const players = CAST.map((character) => ({ character, agent: Agent.generate(baseUrl) }));
  const names = new Map(players.map(({ character, agent }) => [agent.did, character.name]));
  const nameOf = (did: string) => names.get(did) ?? did;
  for (const { character, agent } of players) await register(agent, character);
  const [host] = players as [(typeof players)[number]];
  const { chamberId } = await host.agent.createChamber(chamber());
  for (const { agent } of players) await agent.joinChamber(chamberId);

  const acts = players.map(({ agent, character }) => play(agent, character, chamberId, signal));
  const { forum } = host.agent;
  const [testimony] = await Promise.all([
    witness(forum, chamberId, (event, state) => console.log(tellEvent(event, state, nameOf)), { signal }),
    tellPhases(host.agent, chamberId, signal),
    ...acts,
  ]);
  const exitCode = conclude(testimony, await readChain(forum, testimony.state));
  console.log(`\nTrust nobody: npm run --silent audit -- ${await keep(testimony)}`);
  return exitCode;
}

/** Leaves the lines behind when service and chain are gone; gives the file. */
async function keep({ lines, state }: Testimony): Promise<string> {
  const file = join(await mkdtemp(join(tmpdir(), 'chambers-demo-lines-')), `chamber-${state.chamberId}.ndjson`);
  await writeFile(file, `${lines.join('\n')}\n`);
  return file;
}

async function register(agent: Agent, { name, walletAddress, personality }: Character): Promise<void> {
  await agent.register({ walletAddress, operatorEmail: `${name.toLowerCase()}@example.org`, personality });
  console.log(`${name.padEnd(8)} ${personality.style.padEnd(24)} ${agent.did}`);
}

function chamber() {
  let at = Date.now();
  const deadlines = DEADLINES.map((name, phase) => {
    at += (PHASE_SECONDS[phase] ?? 0) * 1000;
    return [name, new Date(at)] as const;
  });
  return {
    name: 'What shall we build together?',
    minBackersForGraduation: 3,
    ...(Object.fromEntries(deadlines) as Record<(typeof DEADLINES)[number], Date>),
  };
}

async function tellPhases({ forum }: Agent, chamberId: number, signal: AbortSignal): Promise<void> {
  for await (const { phase, state } of forum.watch(chamberId, { signal })) {
    console.log(tellPhase(phase));
    if (phase === 'COMMITTED') console.log(tellTally(state));
  }
}

function conclude({ root }: Testimony, chain: OnChain): number {
  const isSame = root === chain.root;
  console.log(`\nroot on the chain            ${chain.root}`);
  console.log(
    `root of the streamed lines   ${root}   ${isSame ? paint('green', 'the same') : paint('red', 'NOT the same')}`,
  );
  for (const { ticker, address } of chain.tokens) {
    console.log(`token of ${ticker.padEnd(10)}          ${address ?? paint('red', 'MISSING')}`);
  }
  return isSame && chain.tokens.every(({ address }) => address !== null) ? 0 : 1;
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  process.exitCode = await demoMain().catch((error: unknown) => {
    console.error(`The demo failed: ${error instanceof Error ? error.message : String(error)}`);
    return 1;
  });
}
