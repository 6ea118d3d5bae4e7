// The baseline for replay: pages of rows by range from the same database, framed and written one page at a time.
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import Database from 'better-sqlite3';
import { framesOf } from '../../../src/stream/frames.ts';
import { acceptStreams } from './upgrade.ts';

const PAGE_LINES = 1_000;

const { DATABASE_PATH = '' } = process.env;
const db = new Database(DATABASE_PATH, { readonly: true });
// With only one chamber, its events are consecutive in the log: no index would be faster.
const range = 'FROM events WHERE chamber_id = ? AND position > ? ORDER BY position LIMIT ?';
const page = db.prepare<[number, number, number], string>(`SELECT line ${range}`).pluck();
const first = db.prepare<[number], number>('SELECT min(position) FROM events WHERE chamber_id = ?').pluck();

const server = createServer((_request, response) => response.end('{"ok":true}'));
acceptStreams(server, (path, socket) => void replay(Number(path.split('/')[2]), socket));
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo;
  process.stdout.write(`listening on http://127.0.0.1:${port}\n`);
});
process.once('SIGTERM', () => process.exit(0));

async function replay(chamberId: number, socket: Socket): Promise<void> {
  for (let after = (first.get(chamberId) ?? 1) - 1; !socket.destroyed; ) {
    const lines = page.all(chamberId, after, PAGE_LINES);
    if (lines.length === 0) return;
    after += lines.length;
    const ndjson = Buffer.from(`${lines.join('\n')}\n`);
    if (!socket.write(framesOf({ ndjson, count: lines.length }))) await once(socket, 'drain');
  }
}
