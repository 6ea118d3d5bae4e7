// The baseline for live delivery: a signed move is first written to disk; then one frame, prepared once, is written to every socket.
import type { AddressInfo, Socket } from 'node:net';
import { framesOf } from '../../../src/stream/frames.ts';
import type { BaselineRequest } from './evidence.ts';
import { type BaselineResponse, createFront, isMove } from './fronts.ts';
import { openStore } from './store.ts';
import { acceptStreams } from './upgrade.ts';
import { createCheck } from './verifiers.ts';

const check = createCheck('sodium');
const { DATABASE_PATH = ':memory:' } = process.env;
const store = openStore(DATABASE_PATH, 'group');
const sockets = new Set<Socket>();
const server = createFront('hono', { isHello: false, answer });

acceptStreams(server, (_path, socket) => {
  sockets.add(socket);
  socket.once('close', () => sockets.delete(socket));
});
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo;
  process.stdout.write(`listening on http://127.0.0.1:${port}\n`);
});
process.once('SIGTERM', () => process.exit(0));

/** There is only one chamber. */
async function answer(path: string, request: BaselineRequest): Promise<BaselineResponse> {
  if (!isMove(path)) return { status: 200, body: { chamberId: 1, ok: true } };
  if (!(await check(request))) return { status: 401, body: { error: 'FORUM_ERR_SIGNATURE', detail: 'verification' } };
  const eventId = await store(1, request);
  deliver(JSON.stringify({ eventId, chamberId: 1, ...request, body: request.body.toString() }));
  return { status: 200, body: { eventId } };
}

function deliver(line: string): void {
  const frame = framesOf({ ndjson: Buffer.from(`${line}\n`), count: 1 });
  for (const socket of sockets) socket.write(frame);
}
