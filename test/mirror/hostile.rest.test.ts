// A hostile log, which is signed and consistent as it should be: it costs a mirror bounded memory, and leads it to no other host.
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { leafHash } from '../../src/crypto/merkle.ts';
import { Mirror } from '../../src/mirror/mirror.ts';
import { NotServed } from '../../src/mirror/published-log.ts';
import { ALICE } from '../../src/moves/samples.ts';
import { formatCheckpoint } from '../../src/tlog/checkpoint.ts';
import { formatNote, formatVerifierKey, NOTE_KEY_TYPES, signNote, toNoteKey } from '../../src/tlog/note.ts';
import { publicKeyOf, signWith } from '../../src/tlog/sign.ts';
import { ENTRIES, formatEntries, tileAt, tilePath } from '../../src/tlog/tile.ts';
import { GrowingTree } from '../../src/tlog/tiled-tree.ts';
import { TREE } from '../../src/tlog/tree.ts';
import { AGAIN, Costs } from '../client/cost.ts';
import { atEnd, temporaryFolder } from '../kit/temporary.ts';

const LOG_ID = '0123456789abcdef'.repeat(2);
const ORIGIN = `hostile.example/log/${LOG_ID}`;
const SEED = new Uint8Array(32).fill(7);
const KEY = toNoteKey(ORIGIN, NOTE_KEY_TYPES.ed25519, publicKeyOf(SEED));
const MEBIBYTE = 1024 * 1024;
const COST_MIB_MAX = 64;

interface HostileLog {
  /** The lines of one account. */
  readonly lines: readonly string[];
  /** What its checkpoint says instead. */
  readonly size?: number;
  readonly prefix?: string;
}

async function serve({ lines, size = lines.length, prefix = `/log/${LOG_ID}` }: HostileLog) {
  const tree = new GrowingTree(0, [], TREE);
  for (const line of lines) tree.add(leafHash(Buffer.from(line)));
  const text = formatCheckpoint({ origin: ORIGIN, size, root: tree.root() });
  const note = formatNote({ text, signatures: [signNote(text, KEY, signWith(SEED))] });
  const log = { logId: LOG_ID, origin: ORIGIN, prefix, checkpointKey: formatVerifierKey(KEY) };
  const entries = tree.changedTiles().find(({ level }) => level === ENTRIES);
  const tile = tileAt({ level: ENTRIES, index: 0 }, lines.length);
  const files = new Map<string, Buffer | string>([
    ['/', JSON.stringify({ log })],
    [`/log/${LOG_ID}/checkpoint`, note],
    ...(tile === undefined || entries === undefined
      ? []
      : [[`/log/${LOG_ID}/${tilePath(tile)}`, Buffer.from(formatEntries(entries.bytes))] as const]),
  ]);
  const requests: string[] = [];
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://x');
    requests.push(pathname);
    const [after, limit] = [Number(searchParams.get('after')), Number(searchParams.get('limit'))];
    const file = files.get(pathname);
    if (file !== undefined) return void response.end(file);
    if (pathname === `/log/${LOG_ID}/index`) {
      const leaf = (index: number) => JSON.stringify({ index, chamberId: null, did: ALICE, eventId: index + 1 });
      return void response.end(Array.from({ length: limit }, (_, i) => `${leaf(after + i)}\n`).join(''));
    }
    if (pathname !== `/agents/${ALICE}/events`) return void response.writeHead(404).end();
    // One after another: the reader may end before.
    const send = (index: number): void => {
      if (index === after + limit || lines[index] === undefined) response.end();
      else response.write(`${lines[index]}\n`, () => send(index + 1));
    };
    send(after);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  atEnd(() => {
    server.close();
    server.closeAllConnections();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests };
}

async function step(url: string): Promise<unknown> {
  const mirror = await Mirror.open({ url, folder: temporaryFolder() });
  try {
    return await mirror.step();
  } finally {
    await mirror.close();
  }
}

describe('a log of a hostile service', () => {
  it('may claim any size: the mirror asks for its first tile', async () => {
    const { url, requests } = await serve({ lines: [], size: 2 ** 50 });
    await expect(step(url)).rejects.toThrow(NotServed);
    expect(requests).toEqual(['/', `/log/${LOG_ID}/checkpoint`, `/log/${LOG_ID}/tile/entries/000`]);
  });

  it.each(['.evil.example', '@evil.example/log', ':1', `/log/${LOG_ID}/..`, `/log/${LOG_ID}?x=`])(
    'is nowhere else than under its id: %s',
    async (prefix) => {
      const { url, requests } = await serve({ lines: [], prefix });
      await expect(step(url)).rejects.toThrow(/not under \/log\//);
      expect(requests).toEqual(['/']);
    },
  );
});

const costs = Costs.forThisFile();

describe('long lines', AGAIN, () => {
  it('cost a mirror little memory, and it has them all', async () => {
    const mirrored = async (lines: readonly string[]) => {
      const { url } = await serve({ lines });
      const folder = join(temporaryFolder(), 'mirror');
      const { output, peakMib } = await costs.runCli(['mirror', url, folder, '--once', '--json']);
      expect(JSON.parse(output)).toEqual({ size: lines.length, added: lines.length, unpublished: 0 });
      return peakMib;
    };
    const short = Array.from({ length: 100 }, (_, index) => `${index}`);
    // Each varies by when garbage is collected.
    const least = async (lines: readonly string[]) => Math.min(await mirrored(lines), await mirrored(lines));
    const cost = (await least(short.map((line) => line.padEnd(MEBIBYTE, 'x')))) - (await least(short));
    console.info(`${Math.round(cost)} MiB`);
    expect(cost).toBeLessThanOrEqual(COST_MIB_MAX);
  });
});
