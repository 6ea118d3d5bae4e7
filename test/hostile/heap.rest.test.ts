// The service's caches are bounded in bytes. 50 concurrent clients read full chambers and large accounts, many times the size of the heap, through every
// read endpoint, and every response is correct. HEAP_TEST=full means a heap of 256 MB, 100 chambers and 20,000 accounts.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { Agent as HttpAgent, get as httpGet } from 'node:http';
import { expect, it } from 'vitest';
import { openSqliteStore } from '../../src/log/sqlite/store.ts';
import { FAT_PERSONALITY, type FullChamber, FullLogWriter, LONGEST_TEXT, MEMBERS } from '../kit/full-log.ts';
import { PUBLIC_URL, startProcess } from '../kit/service-process.ts';
import { Signer } from '../kit/signer.ts';
import { temporaryDatabase } from '../kit/temporary.ts';

const SMALL_CACHES = { STATE_CACHE_BYTES_MAX: '8000000', RESPONSE_CACHE_BYTES_MAX: '8000000' };
/** Without the limit of the state cache, these chambers end the process. */
const SMALL = {
  heapMegabytes: 88,
  chambers: 15,
  accounts: 400,
  residentBytesMax: 450_000_000,
  caches: SMALL_CACHES,
};
const FULL = { heapMegabytes: 256, chambers: 100, accounts: 20_000, residentBytesMax: 600_000_000, caches: {} };
const { HEAP_TEST } = process.env;
const { heapMegabytes, chambers, accounts, residentBytesMax, caches } = HEAP_TEST === 'full' ? FULL : SMALL;
const CLIENTS = 50;
const BACKED = 2;
const DEPLOYED = 2;
const ACCOUNTS_PER_APPEND = 100;
const LIST_MAX = 200;

const SLOW = { timeout: 1_200_000 };

it(
  `${chambers} full chambers and ${accounts} fat accounts are read with a heap of ${heapMegabytes} MB`,
  SLOW,
  async () => {
    const path = temporaryDatabase();
    const written = await writeChambers(path);
    const settings = { ...caches, NODE_OPTIONS: `--max-old-space-size=${heapMegabytes}` };
    const service = await startProcess(path, settings);
    await readAll(service.url, [...chamberReads(written), ...accountReads()]).catch(async (cause) => {
      const { code, signal, stderr } = await service.kill('SIGKILL');
      throw new Error(`a read failed, and the service ended with ${code ?? signal}: ${stderr}`, { cause });
    });
    // The peak.
    expect(peakResidentBytes(service.pid)).toBeLessThan(residentBytesMax);
    expect(await service.kill('SIGTERM')).toMatchObject({ code: 0, stderr: '' });
  },
);

async function writeChambers(path: string): Promise<readonly FullChamber[]> {
  const store = openSqliteStore(path);
  const writer = new FullLogWriter(store.log);
  const written: FullChamber[] = [];
  for (let id = 1; id <= chambers; id++) {
    written.push(await writer.writeChamber(id, { text: LONGEST_TEXT, backed: BACKED, deployed: DEPLOYED }));
  }
  for (let from = 0; from < accounts; from += ACCOUNTS_PER_APPEND) {
    await writer.writeAccounts(Array.from({ length: ACCOUNTS_PER_APPEND }, (_, at) => signer(from + at)));
  }
  await store.close();
  return written;
}

function signer(index: number): Signer {
  return new Signer(createHash('sha256').update(`account ${index}`).digest());
}

/** A request and its expected response. */
interface Read {
  readonly path: string;
  readonly by?: Signer;
  readonly check: (text: string) => void;
}

/** Endpoint by endpoint, so that a chamber is evicted before it is read again. */
function chamberReads(written: readonly FullChamber[]): readonly Read[] {
  const ids = written.map(({ chamberId }) => chamberId).reverse();
  const all: Read[] = [
    { path: '/', check: (text) => expect(JSON.parse(text)).toMatchObject({ name: 'Chamber Coordination Service' }) },
    { path: '/health', check: (text) => expect(JSON.parse(text).ok).toBe(true) },
    {
      path: `/chambers?phase=ALLOCATE_REVEAL&limit=${LIST_MAX}`,
      check: (text) => expect(field(text, 'chamberId')).toEqual(ids),
    },
    {
      path: `/ideas?limit=${LIST_MAX}`,
      check: (text) => expectTexts(text, Math.min(LIST_MAX, chambers * DEPLOYED)),
    },
  ];
  const each: readonly ((chamber: FullChamber) => Read)[] = [
    ({ chamberId }) => ({ path: `/chambers/${chamberId}/ideas`, check: (text) => expectTexts(text, MEMBERS) }),
    ({ chamberId }) => ({
      path: `/chambers/${chamberId}`,
      check: (text) => {
        const { members, ideas, ...rest } = JSON.parse(text);
        expect(rest).toMatchObject({ chamberId, phase: 'ALLOCATE_REVEAL' });
        expect([members.length, ideas.length]).toEqual([MEMBERS, MEMBERS]);
      },
    }),
    ({ chamberId, events }) => ({
      path: `/chambers/${chamberId}/events?limit=10000`,
      check: (text) => {
        const ids = field(`[${text.trimEnd().replaceAll('\n', ',')}]`, 'eventId');
        expect(ids).toEqual(Array.from({ length: events }, (_, index) => index + 1));
      },
    }),
    ({ chamberId }) => ({
      path: `/chambers/${chamberId}/allocations`,
      check: (text) => {
        const { committed, revealed, tally } = JSON.parse(text);
        expect([committed.length, revealed.length, tally.length]).toEqual([MEMBERS, MEMBERS, MEMBERS]);
        expect(tally[BACKED - 1]).toMatchObject({ backers: MEMBERS, totalBps: (MEMBERS * 10_000) / BACKED });
      },
    }),
    ({ chamberId, root, moves }) => ({
      path: `/chambers/${chamberId}/merkle-preview`,
      check: (text) => expect(JSON.parse(text)).toMatchObject({ root, eventCount: moves }),
    }),
    ({ chamberId, root }) => ({
      path: `/chambers/${chamberId}/events/3/proof`,
      check: (text) => expect(JSON.parse(text)).toMatchObject({ eventId: 3, root }),
    }),
    ({ chamberId, root, moves }) => ({
      path: `/chambers/${chamberId}/consistency?from=5&to=${moves}`,
      check: (text) => expect(JSON.parse(text)).toMatchObject({ toRoot: root }),
    }),
    ({ chamberId }) => ({
      path: `/ideas/T256?chamberId=${chamberId}`,
      check: (text) => expect(JSON.parse(text)).toMatchObject({ chamberId, description: LONGEST_TEXT }),
    }),
  ];
  return [...all, ...each.flatMap((readOf) => written.map(readOf)), ...all];
}

function accountReads(): readonly Read[] {
  return Array.from({ length: accounts }, (_, index) => ({
    path: '/me',
    by: signer(index),
    check: (text) => expect(JSON.parse(text).personality).toEqual(FAT_PERSONALITY),
  }));
}

function field(text: string, name: string): readonly unknown[] {
  return JSON.parse(text).map((item: Readonly<Record<string, unknown>>) => item[name]);
}

function expectTexts(text: string, count: number): void {
  const texts = field(text, 'description');
  expect([texts.length, texts.every((each) => each === LONGEST_TEXT)]).toEqual([count, true]);
}

async function readAll(url: string, reads: readonly Read[]): Promise<void> {
  const agent = new HttpAgent({ keepAlive: true });
  const left = reads.values();
  const clients = Array.from({ length: CLIENTS }, async () => {
    for (const read of left) {
      const { status, text } = await send(url, read, agent);
      expect({ path: read.path, status }).toEqual({ path: read.path, status: 200 });
      read.check(text);
    }
  });
  await Promise.all(clients);
  agent.destroy();
}

function send(url: string, { path, by }: Read, agent: HttpAgent): Promise<{ status: number; text: string }> {
  const created = Math.floor(Date.now() / 1000);
  const headers = { ...by?.sign({ method: 'GET', url: PUBLIC_URL + path, created }) };
  return new Promise((resolve, reject) => {
    const request = httpGet(url + path, { agent, headers }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk) => chunks.push(chunk));
      response.once('end', () => resolve({ status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString() }));
      response.once('error', reject);
    });
    request.once('error', reject);
  });
}

function peakResidentBytes(pid: number): number {
  const [, kibibytes] = /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(kibibytes) * 1024;
}
