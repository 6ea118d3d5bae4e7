// An agent in its own process. It registers, joins the chambers that its parent names, and takes part in all of them at once. It follows
// all chambers on one connection, because Node accepts only one connection per turn of the service's event loop, and one connection per
// chamber would take too long.
import { once } from 'node:events';
import { Agent, ClientError, type TodoView } from '../../src/client/index.ts';
import { REGISTRATION } from '../client/live-service.ts';

/** The parent's message after the registration. */
export interface ChambersToPlay {
  readonly chamberIds: readonly number[];
}

/** The agent's message after all reveals: the time of each response. */
export interface Played {
  readonly revealedAt: Readonly<Record<number, number>>;
}

/** Each move needs a connection. */
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
    const isMade = await makeMove(item).then(() => true, ignoreLate);
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

/** A todo list may be out of date by one move. Any other error ends the process, which the parent reports. */
function ignoreLate(error: unknown): false {
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
