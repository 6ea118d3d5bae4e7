// A mirror follows the service's list of stubs, and replaces a line only by a stub that matches it.
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Inconsistent, Mirror } from '../../src/mirror/mirror.ts';
import { debating, type Running, run } from '../kit/service.ts';
import { atEnd, temporaryDatabase, temporaryFolder } from '../kit/temporary.ts';
import { eventually } from '../kit/until.ts';

const SECRET = 'Rosebud-of-Xanadu-1941';

async function withComment() {
  const list = join(temporaryFolder(), 'withhold');
  writeFileSync(list, '');
  const running = await run({ DATABASE_PATH: temporaryDatabase(), WITHHOLD_FILE: list });
  const { debate } = await debating(running);
  const eventId = await debate(SECRET);
  await debate('plain');
  await covered(running);
  const withholdNow = async () => {
    writeFileSync(list, `1:${eventId} law\n`);
    running.service.reloadLists();
    const { withholding } = running.service.forum.store;
    await eventually(() => expect(withholding.through).toBe(1), 10_000);
  };
  return { running, eventId, withholdNow };
}

async function covered({ service }: Running): Promise<void> {
  const { log, tree } = service.forum.store;
  await eventually(async () => expect((await tree.checkpoint())?.size).toBe(await log.lastPlace()), 20_000);
}

async function stepped(url: string, folder: string, keepsOriginals = false) {
  const mirror = await Mirror.open({ url, folder, keepsOriginals });
  try {
    return { damage: mirror.damage, ...(await mirror.step()) };
  } finally {
    await mirror.close();
  }
}

const holds = (folder: string) =>
  readdirSync(folder, { recursive: true, encoding: 'utf8', withFileTypes: true })
    .filter((file) => file.isFile() && readFileSync(join(file.parentPath, file.name)).includes(SECRET))
    .map(({ name }) => name);

/** The service behind a proxy that changes the list of stubs. */
async function withList(url: string, change: (list: string) => string): Promise<string> {
  const server = createServer(async (request, response) => {
    const answer = await fetch(url + request.url, { headers: { accept: request.headers.accept ?? '' } });
    const body = Buffer.from(await answer.arrayBuffer());
    const isList = request.url?.includes('/withheld') === true;
    response.writeHead(answer.status, { 'content-type': answer.headers.get('content-type') ?? '' });
    response.end(isList ? change(body.toString()) : body);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  atEnd(async () => void server.close().closeAllConnections());
  const address = server.address();
  return `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`;
}

describe('a mirror of a log with withheld lines', () => {
  it('a mirror replaces its line by the stub once, and opens again without damage', async () => {
    const { running, eventId, withholdNow } = await withComment();
    const folder = temporaryFolder();
    const before = await stepped(running.url, folder);
    expect(holds(folder)).toEqual(['lines.ndjson']);
    await withholdNow();
    expect(await stepped(running.url, folder)).toEqual({ ...before, added: 0, withheld: 1 });
    expect(holds(folder)).toEqual([]);
    const lines = readFileSync(join(folder, 'lines.ndjson'), 'utf8').split('\n').slice(0, -1);
    const stubs = lines.map((line) => JSON.parse(line)).filter(({ withheld }) => withheld !== undefined);
    expect(stubs).toMatchObject([{ chamberId: 1, eventId, payload: { comment: '[withheld]' } }]);
    expect(lines).toHaveLength(before.size);
    expect(await stepped(running.url, folder)).toEqual({ ...before, added: 0 });
  });

  it('a mirror keeps the original line separately if its operator wants that', async () => {
    const { running, eventId, withholdNow } = await withComment();
    const folder = temporaryFolder();
    await stepped(running.url, folder, true);
    await withholdNow();
    await stepped(running.url, folder, true);
    expect(holds(folder)).toEqual([`1-${eventId}.ndjson`]);
  });

  it('a mirror that starts later copies the stub directly', async () => {
    const { running, withholdNow } = await withComment();
    await withholdNow();
    const folder = temporaryFolder();
    expect(await stepped(running.url, folder)).toMatchObject({ size: 5, added: 5, unpublished: 0 });
    expect(holds(folder)).toEqual([]);
    expect(await stepped(running.url, folder)).toMatchObject({ added: 0 });
  });

  it.each([
    [
      'has a different leaf',
      (stub: string) => stub.replace(/"leaf":"0x../, '"leaf":"0xff'),
      'signature does not verify',
    ],
    [
      'names a different voter',
      (stub: string) => stub.replace('"comment":"[withheld]"', '"comment":"no"'),
      'text left',
    ],
    ['belongs to a different log', (stub: string) => stub.replace(/"log":"../, '"log":"ff'), 'a different log'],
    ['is a line without a signature', () => '{"chamberId":1,"did":null,"eventId":1,"a":{"b":{}}}\n', 'not a stub'],
  ])('a mirror stops, saves both statements and keeps its line if a stub %s', async (_what, change, problem) => {
    const { running, withholdNow } = await withComment();
    const folder = temporaryFolder();
    await stepped(running.url, folder);
    await withholdNow();
    const failure = await stepped(await withList(running.url, change), folder).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(Inconsistent);
    expect((failure as Inconsistent).message).toContain(problem);
    expect(existsSync((failure as Inconsistent).file)).toBe(true);
    expect(holds(folder)).toEqual(['lines.ndjson']);
  });
});
