// Runs a baseline as a separate process: `node baseline.js <front> <check> <commit>`, e.g. `hono sodium group`; `hello` ignores
// the request.
import type { AddressInfo } from 'node:net';
import { parseBody } from '../../../src/moves/move.ts';
import { moves } from '../../../src/moves/registry.ts';
import type { BaselineRequest } from './evidence.ts';
import { type BaselineResponse, createFront, type Front, isMove } from './fronts.ts';
import { openPostgresStore } from './postgres-store.ts';
import { type CommitMode, openStore } from './store.ts';
import { createCheck, type VerifyMode } from './verifiers.ts';

const [front, verifyMode, commitMode] = process.argv.slice(2) as [Front, VerifyMode | 'hello', CommitMode];
const isHello = verifyMode === 'hello';
const check = createCheck(isHello ? 'none' : verifyMode);
const { DATABASE_PATH = ':memory:', DATABASE_URL = '' } = process.env;
const store = commitMode === 'postgres' ? await openPostgresStore(DATABASE_URL) : openStore(DATABASE_PATH, commitMode);
let chambers = 0;

const server = createFront(front, { isHello, answer });
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo;
  process.stdout.write(`listening on http://127.0.0.1:${port}\n`);
});
process.once('SIGTERM', () => process.exit(0));

async function answer(path: string, request: BaselineRequest): Promise<BaselineResponse> {
  if (!isMove(path)) return { status: 200, body: prepare(path) };
  if (!(await check(request))) return { status: 401, body: { error: 'FORUM_ERR_SIGNATURE', detail: 'verification' } };
  parseBody(path.endsWith('/pass') ? moves.pass : moves.debate, { json: JSON.parse(request.body.toString()) });
  return { status: 200, body: { eventId: await store(Number(path.split('/')[2]), request) } };
}

/** Handles the requests that the load generator sends before the clock starts. */
function prepare(path: string): object {
  return path === '/chambers' ? { chamberId: ++chambers, phase: 'LOBBY' } : { ok: true, turnOrder: 0 };
}
