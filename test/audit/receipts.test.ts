// Compares receipts, and the events that agents name as seen, with lines and with a service.
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { DIRECTORY_PATH } from '../../src/crypto/key-directory.ts';
import type { KeptReceipt } from '../../src/crypto/receipt.ts';
import { run as runCli } from '../cli/run.ts';
import { newChamber, PHASE_MILLIS } from '../client/live-service.ts';
import type { AdvancedClock } from '../kit/clock.ts';
import { covered, ForkedService } from '../kit/fork.ts';
import { atEnd, temporaryFolder } from '../kit/temporary.ts';
import { auditLines, type Line, parse, rechained, report, toText } from './forge.ts';
import { openTamperingProxy } from './tampering-proxy.ts';

const SLOW = { timeout: 180_000 };

let clock: AdvancedClock;

/** An agent has made four moves and has a receipt for each. */
async function played() {
  const world = new ForkedService();
  clock = world.clock;
  const service = await world.open('one');
  const agent = await world.agent('ann');
  const { chamberId } = await agent.createChamber(newChamber(world.clock.read()));
  await agent.joinChamber(chamberId);
  world.clock.advance(PHASE_MILLIS);
  await agent.propose(chamberId, { name: 'Rain', ticker: 'RAIN' });
  await agent.pass(chamberId);
  const lines = join(temporaryFolder(), 'lines.ndjson');
  await runCli(['export', `${chamberId}`, `--out=${lines}`, `--url=${service.url}`]);
  const key = world.keyFile('ann');
  const [logId = ''] = readdirSync(`${key}.receipts`);
  const file = join(`${key}.receipts`, logId, `chamber-${chamberId}.ndjson`);
  return { service, key, lines, file, receipts: readFileSync(file, 'utf8').trimEnd().split('\n'), chamberId };
}

async function audit(target: string, receipts: string, ...options: readonly string[]) {
  const now = `--now=${new Date(clock.read()).toISOString()}`;
  const given = [`--receipts=${receipts}`, ...options, '--json', '--chamber=1', now];
  const { exitCode, out, err } = await runCli(['audit', target, ...given]);
  const checkOf = (name: string) =>
    JSON.parse(out).chambers[0].checks.find((check: { readonly name: string }) => check.name === name);
  return { exitCode, err, checkOf };
}

describe('receipts', () => {
  it('receipts are verified with the key that the chamber pins, even if the key directory lacks it', SLOW, async () => {
    const { service, file } = await played();
    await covered(service);
    const proxy = await openTamperingProxy(service.url, clock.read);
    atEnd(() => proxy.close());
    proxy.tamper = (path, text) => (path === DIRECTORY_PATH ? '{"keys":[]}' : text);
    const { exitCode, checkOf } = await audit(proxy.url, file);
    expect([exitCode, checkOf('receipts')]).toEqual([0, expect.objectContaining({ verdict: 'verified' })]);
  });

  it(
    'receipts are verified against exported lines, against a service, and by the command that keeps them',
    SLOW,
    async () => {
      const { service, key, lines, file } = await played();
      await covered(service);
      for (const target of [lines, service.url]) {
        const { exitCode, checkOf } = await audit(target, file);
        expect([exitCode, checkOf('receipts')]).toEqual([
          0,
          expect.objectContaining({
            verdict: 'verified',
            counts: { verified: 4, broken: 0, undecided: 0, notEvaluated: 0 },
          }),
        ]);
        expect(checkOf('seen')).toMatchObject({ verdict: 'verified', counts: { verified: 3 } });
      }
      const listed = await runCli(['receipts', `--key=${key}`, `--url=${service.url}`, '--json']);
      const rows = JSON.parse(listed.out).receipts as { chamberId: number | null; verdict: string; reason: null }[];
      expect([listed.exitCode, new Set(rows.map(({ verdict }) => verdict))]).toEqual([0, new Set(['verified'])]);
      expect(rows.filter(({ chamberId }) => chamberId === 1)).toHaveLength(4);
      expect(rows.some(({ chamberId }) => chamberId === null)).toBe(true);
      const offline = await runCli(['receipts', `--key=${key}`, `--lines=${lines}`]);
      expect(offline.exitCode).toBe(0);
      expect(offline.out).toMatch(/1 +4 .*verified/);
      expect(offline.out).toMatch(/account +1 .*not evaluated +the lines belong to another stream/);
    },
  );

  it('receipts of events beyond the end of a file are not evaluated', SLOW, async () => {
    const { lines, file } = await played();
    writeFileSync(lines, readFileSync(lines, 'utf8').split('\n').slice(0, 3).join('\n').concat('\n'));
    const { exitCode, checkOf } = await audit(lines, file);
    expect([exitCode, checkOf('receipts')]).toEqual([
      0,
      expect.objectContaining({ verdict: 'not evaluated', note: 'the lines end before event 4 of a receipt' }),
    ]);
  });

  it('receipts of moves that the file lacks are broken if the file shows that the moves have ended', SLOW, async () => {
    const { lines, file } = await played();
    const [created, joined] = parse(readFileSync(lines, 'utf8').trimEnd().split('\n')) as [Line, Line];
    const { chamberId = null } = created;
    // An hour after the last deadline, and later than any move or receipt.
    const { deadlines } = created['payload'] as { readonly deadlines: { readonly allocateRevealDeadline: string } };
    const at = Date.parse(deadlines.allocateRevealDeadline) + 3_600_000;
    const before = toText(rechained([created, joined]));
    const { moves } = await auditLines(before, {});
    const payload = {
      ...{ merkleRoot: moves.root(), eventCount: 2, txHash: `0x${'12'.repeat(32)}`, blockNumber: 42 },
      committedAt: new Date(at).toISOString(),
    };
    const ts = new Date(at).toISOString();
    const committed = { chamberId, ts, type: 'chamber.committed', did: null, request: null, payload };
    writeFileSync(lines, toText(rechained([created, joined, committed])));
    const { exitCode, checkOf } = await audit(lines, file);
    expect([exitCode, checkOf('receipts').counts]).toEqual([
      3,
      { verified: 2, broken: 2, undecided: 0, notEvaluated: 0 },
    ]);
    // A line dated more than a minute after the receipt proves the same thing.
    writeFileSync(lines, toText(rechained([created, { ...joined, ts }])));
    expect((await audit(lines, file)).checkOf('receipts').counts).toMatchObject({ verified: 1, broken: 3 });
  });

  it('receipts of an account are compared with the lines of --accounts', SLOW, async () => {
    const { service, key, lines } = await played();
    const accounts = `${lines}.accounts`;
    await runCli(['export', '1', `--out=${lines}`, `--with-accounts=${accounts}`, `--url=${service.url}`, '--force']);
    const folder = `${key}.receipts`;
    const without = await audit(lines, folder);
    expect([without.exitCode, without.checkOf('receipts')]).toEqual([
      0,
      expect.objectContaining({ counts: { verified: 4, broken: 0, undecided: 0, notEvaluated: 2 } }),
    ]);
    expect(without.checkOf('receipts').note).toContain('use --accounts');
    const compared = async () => audit(lines, folder, `--accounts=${accounts}`);
    expect((await compared()).checkOf('receipts').counts).toMatchObject({ verified: 6, notEvaluated: 0 });
    const records = parse(readFileSync(accounts, 'utf8').trimEnd().split('\n'));
    const dated = new Date(Date.parse(String(records.at(-1)?.['ts'])) + 1).toISOString();
    writeFileSync(accounts, toText(rechained(records.with(-1, { ...records.at(-1), ts: dated }))));
    const replaced = await compared();
    expect([replaced.exitCode, replaced.checkOf('receipts').counts]).toEqual([
      3,
      { verified: 5, broken: 1, undecided: 0, notEvaluated: 0 },
    ]);
    expect(replaced.checkOf('receipts').findings).toEqual([
      expect.objectContaining({ eventIds: [], sentence: expect.stringMatching(/^of the account of did:key:/) }),
    ]);
  });

  it('receipts of an account are compared with the service in an audit of one chamber', SLOW, async () => {
    const world = new ForkedService();
    const one = await world.open('one');
    const agent = await world.agent('ann');
    const { chamberId } = await agent.createChamber(newChamber(world.clock.read()));
    await one.stop();
    world.fork();
    const again = await world.open('one');
    await agent.changePersonality({ style: 'dry' });
    await again.stop();
    const { url } = await world.open('two');
    const options = [`--chamber=${chamberId}`, `--receipts=${world.keyFile('ann')}.receipts`];
    const proofs = `--proofs=${join(temporaryFolder(), 'proofs')}`;
    const { exitCode, out } = await runCli(['audit', url, ...options, proofs, '--json']);
    expect([exitCode, JSON.parse(out).problems]).toEqual([
      3,
      expect.arrayContaining([expect.stringMatching(/^did:key:.* receipt for event 3 .* there is no such event$/)]),
    ]);
  });

  it(
    'receipts that contradict the lines of an account are undecided if the key directory lacks their key',
    SLOW,
    async () => {
      const world = new ForkedService();
      const one = await world.open('one');
      const agent = await world.agent('ann');
      const { chamberId } = await agent.createChamber(newChamber(world.clock.read()));
      await one.stop();
      world.fork();
      const again = await world.open('one');
      await agent.changePersonality({ style: 'dry' });
      await again.stop();
      const two = await world.open('two');
      await covered(two);
      const proxy = await openTamperingProxy(two.url, world.clock.read);
      atEnd(() => proxy.close());
      const receipts = `--receipts=${world.keyFile('ann')}.receipts`;
      for (const directory of ['{"keys":[]}', 'none']) {
        proxy.tamper = (path, text) => (path === DIRECTORY_PATH ? directory : text);
        for (const options of [[], [`--chamber=${chamberId}`]]) {
          const { exitCode, out } = await runCli(['audit', proxy.url, ...options, receipts, '--json']);
          expect([exitCode, JSON.parse(out)]).toEqual([
            4,
            expect.objectContaining({
              problems: [],
              doubts: [
                expect.stringMatching(
                  /^did:key:\S+: the receipt for event 3 is no evidence: its key is not in the key directory .* there is no such event$/,
                ),
              ],
            }),
          ]);
        }
      }
    },
  );

  it('receipts whose request is logged as a different event are undecided', SLOW, async () => {
    const { lines, file } = await played();
    const records = parse(readFileSync(lines, 'utf8').trimEnd().split('\n'));
    writeFileSync(lines, toText(rechained([{ ...records[0], chamberId: 2 }])));
    const { exitCode, out } = await runCli(['audit', lines, `--receipts=${file}`, '--json']);
    const [{ checks }] = JSON.parse(out).chambers;
    expect(exitCode).toBe(4);
    expect(checks.find(({ name }: { name: string }) => name === 'receipts')).toMatchObject({
      verdict: 'undecided',
      note: expect.stringContaining('but its request is in event 1 of chamber 2'),
    });
  });

  it.each([1, 2])(
    'receipts of a chamber missing from the first %i lists are compared with its lines',
    SLOW,
    async (lacking) => {
      const world = new ForkedService();
      const service = await world.open('one');
      const agent = await world.agent('ann');
      for (let chambers = 0; chambers < 2; chambers++) await agent.createChamber(newChamber(world.clock.read()));
      await covered(service);
      const proxy = await openTamperingProxy(service.url, world.clock.read);
      atEnd(() => proxy.close());
      let lists = 0;
      const isLacking = (path: string) => path.startsWith('/chambers?') && lists++ < lacking;
      proxy.tamper = (path, text) => (isLacking(path) ? JSON.stringify(JSON.parse(text).slice(1)) : text);
      const options = [`--receipts=${world.keyFile('ann')}.receipts`, `--proofs=${join(temporaryFolder(), 'proofs')}`];
      const now = `--now=${new Date(world.clock.read()).toISOString()}`;
      const { exitCode, out } = await runCli(['audit', proxy.url, ...options, now, '--json']);
      expect([exitCode, JSON.parse(out).problems]).toEqual([0, []]);
    },
  );

  it('all receipt files of a folder are read, including one without a final line break', SLOW, async () => {
    const { lines, file, receipts } = await played();
    const folder = temporaryFolder();
    writeFileSync(join(folder, 'ann.json.receipts'), receipts.slice(0, 3).join('\n'));
    writeFileSync(join(folder, 'more.ndjson'), receipts[3] ?? '');
    writeFileSync(join(folder, '.DS_Store'), 'of a file manager');
    expect((await audit(lines, folder)).checkOf('receipts').counts).toMatchObject({ verified: 4 });
    writeFileSync(join(folder, 'notes.txt'), 'hello\n');
    const { exitCode, err } = await audit(lines, folder);
    expect([exitCode, err]).toEqual([2, expect.stringContaining('notes.txt is not a receipt')]);
    expect(readFileSync(file, 'utf8')).toContain(receipts[3]);
  });

  it('receipts expose a replaced event, also to the command that keeps them', SLOW, async () => {
    const { key, lines, file } = await played();
    const records = parse(readFileSync(lines, 'utf8').trimEnd().split('\n'));
    const later = new Date(Date.parse(String(records[2]?.['ts'])) + 1).toISOString();
    writeFileSync(lines, toText(rechained(records.with(2, { ...records[2], ts: later }))));
    const { exitCode, checkOf } = await audit(lines, file);
    expect([exitCode, checkOf('receipts')?.counts]).toEqual([3, expect.objectContaining({ verified: 2, broken: 2 })]);
    const listed = await runCli(['receipts', `--key=${key}`, `--lines=${lines}`, '--json']);
    expect(listed.exitCode).toBe(3);
    const broken = JSON.parse(listed.out).receipts.filter(({ verdict }: { verdict: string }) => verdict === 'broken');
    expect(broken.map(({ eventId }: { eventId: number }) => eventId)).toEqual([3, 4]);
  });

  it('receipts count even if the first line pins no keys or a line precedes it', SLOW, async () => {
    const { lines, file } = await played();
    const records = parse(readFileSync(lines, 'utf8').trimEnd().split('\n'));
    const [created = {}, ...rest] = records;
    const { serviceKeys: _, ...payload } = created['payload'] as Line;
    writeFileSync(lines, toText(rechained([{ ...created, payload }, ...rest])));
    const unpinned = await audit(lines, file);
    // The later moves name seen events, too.
    expect([unpinned.exitCode, unpinned.checkOf('receipts').verdict]).toEqual([3, 'undecided']);
    const { chamberId = null, ts = null } = created;
    const failure = { ideaId: 'idea-1', txHash: null, reason: 'none' };
    const before = { chamberId, ts, type: 'idea.deploy_failed', did: null, request: null, payload: failure };
    writeFileSync(lines, toText(rechained([before, ...records])));
    const behind = await audit(lines, file);
    expect([behind.exitCode, behind.checkOf('receipts').verdict]).toEqual([3, 'broken']);
    expect(behind.checkOf('service-events').findings[0]?.sentence).toMatch(/comes before the creation of its chamber/);
  });

  it.each<[string, (receipt: KeptReceipt) => object, RegExp]>([
    ['body', ({ response }) => ({ response: { ...response, body: '{}' } }), /Content-Digest is not that of its body/],
    ['status', ({ response }) => ({ response: { ...response, status: 201 } }), /its status is 201/],
    [
      'event',
      ({ response }) => ({ response: { ...response, event: response.event.replace('id=4', 'id=3') } }),
      /not verify/,
    ],
    ['log', ({ response }) => ({ response: { ...response, logId: 'ab'.repeat(16) } }), /not verify/],
    ['request', ({ request }) => ({ request: { ...request, targetUri: `${request.targetUri}x` } }), /not verify/],
    ['key', ({ key }) => ({ key: { ...key, x: 'A'.repeat(43) } }), /not an Ed25519 key/],
    ['shape', () => ({ request: null }), /is not a receipt/],
  ])('receipts with an altered %s are unusable, and accuse nobody', SLOW, async (_what, change, problem) => {
    const { lines, receipts } = await played();
    const changed = join(temporaryFolder(), 'changed.ndjson');
    const last = JSON.parse(receipts.at(-1) ?? '') as KeptReceipt;
    writeFileSync(changed, `${JSON.stringify({ ...last, ...change(last) })}\n`);
    const { exitCode, err } = await runCli(['audit', lines, `--receipts=${changed}`]);
    expect(exitCode).toBe(2);
    expect(err).toMatch(problem);
    expect(err).toContain(`--receipts: line 1 of ${changed}`);
  });

  it('receipts are read up to a last line cut off by a crash', SLOW, async () => {
    const { lines, file } = await played();
    writeFileSync(file, readFileSync(file, 'utf8').slice(0, -10));
    const { exitCode, checkOf } = await audit(lines, file);
    expect([exitCode, checkOf('receipts')?.counts.verified]).toEqual([0, 3]);
  });

  it('a receipt is read after one cut off by a crash on the same line', SLOW, async () => {
    const { lines, file, receipts } = await played();
    const [first = '', second = '', ...others] = receipts;
    writeFileSync(file, `${[first.slice(0, 300) + first.slice(0, -10) + second, ...others].join('\n')}\n`);
    const { exitCode, checkOf } = await audit(lines, file);
    expect([exitCode, checkOf('receipts')?.counts.verified]).toEqual([0, 3]);
  });

  it('a missing receipt file is reported in one sentence', async () => {
    const missing = join(temporaryFolder(), 'agent.json');
    const listed = await runCli(['receipts', `--key=${missing}`]);
    expect([listed.exitCode, listed.err]).toEqual([2, expect.stringContaining('that key has no receipts')]);
    const audited = await runCli(['audit', 'fixtures/logs/chamber.ndjson', `--receipts=${missing}`]);
    expect([audited.exitCode, audited.err.split('\n').length]).toEqual([2, 1]);
    const proof = await runCli(['proof', missing]);
    expect([proof.exitCode, existsSync(missing)]).toEqual([2, false]);
  });
});

describe('seen events', () => {
  it('a seen event exposes a replaced line and all findings that follow from it', SLOW, async () => {
    const { lines } = await played();
    const records = parse(readFileSync(lines, 'utf8').trimEnd().split('\n'));
    expect((await report(readFileSync(lines, 'utf8'))).verdict).toBe('verified');
    const later = new Date(Date.parse(String(records[1]?.['ts'])) + 1).toISOString();
    const { causes, checks, sentence } = await report(toText(rechained(records.with(1, { ...records[1], ts: later }))));
    expect(checks.filter(({ verdict }) => verdict === 'broken').map(({ name }) => name)).toEqual(['seen']);
    expect(causes).toEqual([{ eventIds: [2], sentence: 'Event 2 is not the one that an agent had seen' }]);
    expect(sentence).toBe('Event 2 is not the one that an agent had seen.');
  });

  it('a wrong seen event follows from an altered line', SLOW, async () => {
    const { lines } = await played();
    const records = parse(readFileSync(lines, 'utf8').trimEnd().split('\n'));
    const { payload } = records[2] as { readonly payload: object };
    const altered = { ...records[2], payload: { ...payload, name: 'Snow' } };
    const { causes } = await report(toText(rechained(records.with(2, altered))));
    expect(causes).toEqual([{ eventIds: [3], sentence: 'Event 3 was altered after it was signed' }]);
  });
});
