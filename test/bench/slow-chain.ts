// Moves during joins that wait 3 s for a chain; other agents must get responses as fast as without these joins.
import { setTimeout as sleep } from 'node:timers/promises';
import { startDevChain } from '../../src/dev-chain/dev-chain.ts';
import { openRpc } from '../../src/relayer/rpc.ts';
import { type Contract, deployContract } from '../kit/contracts.ts';
import { proofBy, walletOf } from '../kit/wallets.ts';
import { openFaultProxy } from '../relayer/fault-proxy.ts';
import { type Agent, makeAgent, rawRequest, signedRequest } from './load/agents.ts';
import { describeAnswer } from './load/chambers.ts';
import { Connection } from './load/connection.ts';
import type { MovesResult } from './load/moves.ts';
import { type Options, scaled } from './options.ts';
import { drive, withServer } from './processes.ts';
import type { Report } from './report.ts';
import { about, failuresOf, measureInRounds, rowOf, type Series } from './rounds.ts';
import { SERVICE } from './sides.ts';
import { compare } from './verdicts.ts';

const DELAY_MILLIS = 3_000;
/** The number of concurrent requests that the service makes to the chain. */
const JOINERS = 32;
/** More chambers than each joiner can join during the moves. */
const CHAMBERS = 16;
const CONNECTIONS = 8;
const MOVES_PER_CONNECTION = 8_000;
const DAY_MILLIS = 86_400_000;
const AT_MOST = { is: 'at most', value: 1.3 } as const;

interface Figures {
  readonly calm: MovesResult;
  readonly slow: MovesResult;
  /** The number of joins that got a response during the moves. */
  readonly joined: number;
}

export async function benchSlowChain(options: Options): Promise<Report> {
  const contender = { name: 'moves', measure: () => measure(options) };
  const [series] = (await measureInRounds([contender], options.runs)) as [Series<Figures>];
  const partOf = (part: 'calm' | 'slow', what: string): Series<MovesResult> => {
    return { ...about(what, series), runs: series.runs.map((run) => run[part]) };
  };
  const calm = partOf('calm', 'before');
  const slow = partOf('slow', `beside ${JOINERS} joins at a time`);
  const idle = series.runs.some(({ joined }) => joined === 0) ? ['no join got a response meanwhile'] : [];
  const objections = [...failuresOf([calm, slow]), ...idle];
  const [of, to] = [slow, calm].map((each) => rowOf(each, 'ms p50', ({ latency }) => latency.p50));
  const tails = [slow, calm].map((each) => rowOf(each, 'ms p99', ({ latency }) => latency.p99));
  if (of === undefined || to === undefined) throw new Error('nothing was measured');
  return {
    bench: `slow-chain (${DELAY_MILLIS / 1_000} s for each call)`,
    rows: [of, to, ...tails, rowOf(series, 'joins', ({ joined }) => joined)],
    verdicts: [compare({ what: 'ms p50: beside joins / before', of, to, target: AT_MOST, objections })],
  };
}

async function measure(options: Options): Promise<Figures> {
  const logger = { info() {}, warn() {}, error() {} };
  const chain = await startDevChain({ logger });
  const { rpcUrl, privateKey, registryAddress, factoryAddress } = chain.config;
  const [proxy, rpc] = [await openFaultProxy(rpcUrl), openRpc(rpcUrl)];
  try {
    const token = await deployContract(rpc, 'admission/Erc20');
    for (let index = 0; index < JOINERS; index++) await token.send('mint', walletOf(index).address, 1n);
    const env = {
      ...SERVICE.env,
      CHAIN: '',
      RPC_URL: proxy.url,
      RELAYER_PRIVATE_KEY: privateKey,
      CHAMBER_REGISTRY_ADDRESS: registryAddress,
      IDEA_FACTORY_ADDRESS: factoryAddress,
    };
    return await withServer({ ...SERVICE, env }, async ({ authority }) => {
      const joiners = await Promise.all(Array.from({ length: JOINERS }, (_, index) => openJoiner(authority, index)));
      const chamberIds: number[] = [];
      for (let count = 0; count < CHAMBERS; count++) chamberIds.push(await openChamber(joiners[0] as Joiner, token));
      const calm = await driveMoves(authority, options);
      proxy.fault = () => sleep(DELAY_MILLIS, undefined);
      const stop = new AbortController();
      const joins = joiners.map((joiner) => join(joiner, chamberIds, stop.signal));
      const moves = driveMoves(authority, options).finally(() => stop.abort());
      const [slow, ...counts] = await Promise.all([moves, ...joins]);
      const joined = counts.reduce((sum, count) => sum + count, 0);
      for (const { connection } of joiners) connection.close();
      return { calm, slow, joined };
    });
  } finally {
    proxy.close();
    rpc.close();
    await chain.stop();
  }
}

function driveMoves(authority: string, options: Options): Promise<MovesResult> {
  const movesPerConnection = scaled(MOVES_PER_CONNECTION, options);
  return drive({
    kind: 'moves',
    authority,
    connections: CONNECTIONS,
    agentsPerChamber: 1,
    movesPerConnection,
    rounds: 1,
  });
}

/** An agent with a proven wallet. */
interface Joiner {
  readonly agent: Agent;
  readonly authority: string;
  readonly connection: Connection;
}

async function openJoiner(authority: string, index: number): Promise<Joiner> {
  const [agent, wallet] = [makeAgent(), walletOf(index)];
  const joiner = { agent, authority, connection: await Connection.open(authority) };
  const content = { pubkeyHex: agent.pubkeyHex, walletAddress: wallet.address, personality: {} };
  const register = { authority, method: 'POST', path: '/register' };
  const unsigned = { ...register, body: JSON.stringify({ ...content, operatorEmail: 'operator@example.org' }) };
  await accepted(joiner, rawRequest(unsigned));
  const proof = await proofBy(wallet, agent.did, {
    service: `http://${authority}`,
    issuedAt: new Date().toISOString(),
  });
  await accepted(joiner, signedRequest(agent, { ...register, body: JSON.stringify({ ...content, ...proof }) }));
  return joiner;
}

async function openChamber(creator: Joiner, { address }: Contract): Promise<number> {
  const at = (days: number) => new Date(Date.now() + days * DAY_MILLIS).toISOString();
  const deadlines = {
    lobbyDeadline: at(1),
    proposalDeadline: at(2),
    debateDeadline: at(3),
    allocateCommitDeadline: at(4),
    allocateRevealDeadline: at(5),
  };
  // The token's block is known, so that a join asks the chain only once.
  const admission = { token: { address, minBalance: '1', at: 'creation' } };
  const body = JSON.stringify({ name: 'Bench', ...deadlines, admission });
  const { agent, authority } = creator;
  const created = await accepted(creator, signedRequest(agent, { authority, method: 'POST', path: '/chambers', body }));
  return (created as { readonly chamberId: number }).chamberId;
}

/** Joins one chamber after another until the signal aborts; returns the number of successful joins until then. */
async function join(joiner: Joiner, chamberIds: readonly number[], signal: AbortSignal): Promise<number> {
  const { agent, authority, connection } = joiner;
  let count = 0;
  while (!signal.aborted && count < chamberIds.length) {
    const path = `/chambers/${chamberIds[count]}/join`;
    const answer = await connection.exchange(signedRequest(agent, { authority, method: 'POST', path, body: '{}' }));
    // On a busy machine, 3 s can exceed the 5 s that a join waits; the join is then repeated.
    if (answer.status !== 200 && answer.status !== 503) throw new Error(describeAnswer(answer));
    if (answer.status === 200 && !signal.aborted) count++;
  }
  return count;
}

async function accepted({ connection }: Joiner, request: Buffer): Promise<unknown> {
  const answer = await connection.exchange(request);
  if (answer.status !== 200) throw new Error(describeAnswer(answer));
  return JSON.parse(answer.body.toString());
}
