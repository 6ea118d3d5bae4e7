// An agent in a process of its own: it registers, joins the chambers that its parent names, and plays all of them at once. It follows them on
// one connection: Node accepts one connection in each turn of the service's event loop, so one for each chamber would come late.
import { once } from 'node:events';
import { Agent, ClientError, type TodoView } from '../../src/client/index.ts';
import { REGISTRATION } from '../client/live-service.ts';

/** What the parent sends once the agent is registered. */
export interface ChambersToPlay {
  readonly chamberIds: readonly number[];
}

/** What the agent sends back, when it has revealed in all of them: when each reveal was answered. */
export interface Played {
  readonly revealedAt: Readonly<Record<number, number>>;
}

/** Each takes a connection. */
const MOVES_AT_ONCE_MAX = 4;

const [url = '', ticker = ''] = process.argv.slice(2);
const agent = Agent.generate(url);
await agent.register(REGISTRATION);
process.send?.('registered');
while (true) {
  const [{ chamberIds }] = (await once(process, 'message')) as [ChambersToPlay];
  process.send?.({ revealedAt: await playAll(chamberIds) } satisfies Played);
}

async function playAll(chamberIds: readonly number[]): Promise<Readonly<Record<number, number>>> {
  for (const chamberId of chamberIds) await agent.joinChamber(chamberId);
  const revealedAt: Record<number, number> = {};
  const acting = new Set<number>();
  let due: readonly TodoView[] = [];
  const act = async (item: TodoView) => {
    acting.add(item.chamberId);
    const isMade = await makeMove(item).then(() => true, unlessLate);
    if (isMade && item.must === 'reveal') revealedAt[item.chamberId] = Date.now();
    acting.delete(item.chamberId);
    due = due.filter((other) => other !== item);
    startMoves();
  };
  const startMoves = () => {
    const free = due.filter(({ chamberId }) => !acting.has(chamberId));
    for (const item of free.slice(0, Math.max(0, MOVES_AT_ONCE_MAX - acting.size))) void act(item);
  };
  for await (const { todo } of agent.todos()) {
    due = todo.filter(({ must }) => must !== 'wait');
    startMoves();
    if (Object.keys(revealedAt).length === chamberIds.length) break;
  }
  return revealedAt;
}

/** A list may be on its way while a move is made that it still asks for. Any other error ends the process, which the parent reports. */
function unlessLate(error: unknown): false {
  const late = ['FORUM_ERR_TURN', 'FORUM_ERR_PHASE', 'FORUM_ERR_CONFLICT'];
  if (error instanceof ClientError && late.includes(error.code)) return false;
  throw error;
}

async function makeMove({ chamberId, must, phase }: TodoView): Promise<void> {
  if (must === 'commit') await agent.commit(chamberId, [{ ideaId: 'idea-1', bps: 10_000 }]);
  if (must === 'reveal') await agent.reveal(chamberId);
  if (must !== 'pass') return;
  if (phase === 'PROPOSAL') await agent.propose(chamberId, { name: ticker, ticker });
  else await agent.debate(chamberId, { comment: `for ${ticker}` });
  await agent.pass(chamberId);
}
