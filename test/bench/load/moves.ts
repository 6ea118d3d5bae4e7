// Signed moves at full speed: each connection drives its own chamber, in which the agents debate and pass in turn.
import { acceptReceipt } from '../../../src/crypto/receipt.ts';
import type { Latencies } from '../figures.ts';
import { latenciesOf } from '../figures.ts';
import { signedRequest } from './agents.ts';
import { type Chamber, type Deadline, describeAnswer, lobbyFromNow, openChamber, untilDebate } from './chambers.ts';
import { type Answer, Connection } from './connection.ts';
import type { Span } from './span.ts';

export interface MovesTask {
  readonly kind: 'moves';
  /** The host and port that signatures cover. */
  readonly authority: string;
  /** Further nodes of the service. */
  readonly others?: readonly string[];
  /** Whether a chamber's moves go to all nodes in turn; otherwise they go to one node. */
  readonly isSpread?: boolean;
  readonly connections: number;
  readonly agentsPerChamber: number;
  /** Whether every move asks for a receipt. */
  readonly wantsReceipts?: boolean;
  /** Optional members of each chamber's creation, such as rounds. */
  readonly pace?: object;
  /** The time to create the chambers; the default is enough for a few. */
  readonly lobbyMillis?: number;
  /** The number of moves signed in advance for each connection; the run ends when a connection has none left. */
  readonly movesPerConnection: number;
  /** How often the moves are sent; more than once only for baselines that ignore requests. */
  readonly rounds: number;
}

export interface MovesResult {
  readonly perSecond: number;
  readonly latency: Latencies;
  readonly answers: number;
  /** The period that was counted. */
  readonly span: Span;
  /** The first response other than 200. */
  readonly failure: string | null;
}

/** The share of the moves that is warm-up and not counted. */
const WARM_UP_SHARE = 0.2;

export async function driveMoves(task: MovesTask): Promise<MovesResult> {
  const connections = await Promise.all(Array.from({ length: task.connections }, (_, index) => open(task, index)));
  const deadline = lobbyFromNow(task.agentsPerChamber, task.lobbyMillis);
  const chambers = await openChambers(connections, task, deadline);
  const moves = signMoves(chambers, task);
  await untilDebate(deadline);
  const result = await race(connections, moves, task);
  for (const connection of connections.flat()) connection.close();
  return result;
}

/** Opens the connections that a chamber's moves use in turn. */
function open(
  { authority, others = [], isSpread = false }: MovesTask,
  chamber: number,
): Promise<readonly Connection[]> {
  const nodes = [authority, ...others];
  const own = isSpread ? nodes : [nodes[chamber % nodes.length] as string];
  return Promise.all(own.map((node) => Connection.open(node)));
}

function openChambers(
  connections: readonly (readonly Connection[])[],
  task: MovesTask,
  deadline: Deadline,
): Promise<readonly Chamber[]> {
  const shape = { size: task.agentsPerChamber, pace: task.pace };
  return Promise.all(connections.map(([first]) => openChamber(first as Connection, task.authority, shape, deadline)));
}

const COMMENT =
  'The reserve should cover two quarters of operating costs before anything is spent on growth; see the figures of move ';

/** Signs the moves in the order of sending, like agents: the log's index of signatures is sorted by signing time. */
function signMoves(chambers: readonly Chamber[], task: MovesTask): readonly (readonly Buffer[])[] {
  const moves = chambers.map((): Buffer[] => []);
  for (let index = 0; index < task.movesPerConnection; index++) {
    for (const [at, chamber] of chambers.entries()) moves[at]?.push(signMove(chamber, index, task));
  }
  return moves;
}

function signMove({ chamberId, agents }: Chamber, index: number, task: MovesTask): Buffer {
  const agent = agents[Math.floor(index / 2) % agents.length];
  if (agent === undefined) throw new Error('the chamber has no agents');
  const isPass = agents.length > 1 && index % 2 === 1;
  const body = isPass
    ? '{}'
    : JSON.stringify({ comment: COMMENT + index, refinement: { confidence: 0.7, step: index } });
  const path = `/chambers/${chamberId}/${isPass ? 'pass' : 'debate'}`;
  const headers = task.wantsReceipts ? { 'Accept-Signature': acceptReceipt(`n${chamberId}n${index}`) } : {};
  return signedRequest(agent, { authority: task.authority, method: 'POST', path, body, headers });
}

const RECEIPT = /\r\nevent: \d+;id=/i;

function race(
  connections: readonly (readonly Connection[])[],
  moves: readonly (readonly Buffer[])[],
  { rounds, wantsReceipts = false }: MovesTask,
): Promise<MovesResult> {
  const movesEach = (moves[0]?.length ?? 0) * rounds;
  const warmUp = Math.ceil(movesEach * WARM_UP_SHARE) * connections.length;
  const latencies: number[] = [];
  let answers = 0;
  let countedFrom = 0;
  let isOver = false;

  return new Promise((resolve, reject) => {
    connections.forEach((own, index) => {
      for (const connection of own) connection.onFailure(reject);
      drive(own, moves[index] ?? [], 0);
    });

    function drive(own: readonly Connection[], requests: readonly Buffer[], sent: number): void {
      const connection = own[sent % own.length];
      const request = requests[sent % requests.length];
      if (isOver) return;
      if (sent === movesEach || request === undefined || connection === undefined) {
        end(null);
        return;
      }
      const sentAt = performance.now();
      connection.send(request, (answer) => {
        count(answer, sentAt);
        drive(own, requests, sent + 1);
      });
    }

    function count(answer: Answer, sentAt: number): void {
      if (isOver) return;
      const now = performance.now();
      if (answer.status !== 200) end(describeAnswer(answer));
      if (wantsReceipts && !RECEIPT.test(answer.head)) end('200 without a receipt');
      answers++;
      if (answers === warmUp) countedFrom = now;
      else if (answers > warmUp) latencies.push(now - sentAt);
    }

    function end(failure: string | null): void {
      if (isOver) return;
      isOver = true;
      const until = performance.now();
      const span = { from: performance.timeOrigin + countedFrom, until: performance.timeOrigin + until };
      const perSecond = latencies.length / ((until - countedFrom) / 1000);
      resolve({ perSecond, latency: latenciesOf(latencies), answers, span, failure });
    }
  });
}
