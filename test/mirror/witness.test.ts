// Witnesses, and a service that asks them: a good one cosigns what extends its last checkpoint, a bad one harms nothing.
import { randomBytes } from 'node:crypto';
import { existsSync, statSync, writeFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import { consistencyProof } from '../../src/crypto/merkle-proof.ts';
import { addCheckpoint, type WitnessedTree } from '../../src/mirror/witness.ts';
import { createWitnessServer } from '../../src/mirror/witness-server.ts';
import { openWitnessKey, WitnessState } from '../../src/mirror/witness-state.ts';
import { formatAddCheckpoint } from '../../src/tlog/add-checkpoint.ts';
import { formatCheckpoint } from '../../src/tlog/checkpoint.ts';
import { type Misbehaviour, verifyMisbehaviour } from '../../src/tlog/misbehaviour.ts';
import {
  formatNote,
  formatVerifierKey,
  isNoteSignature,
  NOTE_KEY_TYPES,
  type NoteKey,
  parseNote,
  parseSignatureLines,
  parseVerifierKey,
  signNote,
  toNoteKey,
} from '../../src/tlog/note.ts';
import { parsePolicy } from '../../src/tlog/policy.ts';
import { publicKeyOf, signWith } from '../../src/tlog/sign.ts';
import { nodesOfTiles, openGrowingTree } from '../../src/tlog/tiled-tree.ts';
import { TREE } from '../../src/tlog/tree.ts';
import { newAgent, run } from '../kit/service.ts';
import { atEnd, temporaryFolder } from '../kit/temporary.ts';
import { eventually } from '../kit/until.ts';

function keyed(name: string, type: NoteKey['type']) {
  const seed = randomBytes(32);
  return { key: toNoteKey(name, type, publicKeyOf(seed)), sign: signWith(seed) };
}

const log = keyed('forum.test/log/1', NOTE_KEY_TYPES.ed25519);
const witness = keyed('witness.test/w1', NOTE_KEY_TYPES.cosignature);

/** A log of so many leaves, all of one kind. */
async function logOf(size: number, kind = 0) {
  const tree = await openGrowingTree(0, async (refs) => refs.map(() => undefined));
  for (let i = 0; i < size; i++) tree.add(new Uint8Array(32).fill(kind + i));
  const tiles = new Map(tree.changedTiles().map(({ level, index, bytes }) => [`${level}/${index}`, bytes]));
  const read = nodesOfTiles(async (refs) => refs.map(({ level, index }) => tiles.get(`${level}/${index}`)));
  const text = formatCheckpoint({ origin: log.key.name, size, root: tree.root() });
  const note = formatNote({ text, signatures: [signNote(text, log.key, log.sign)] });
  const request = async (oldSize: number) => {
    const isProved = oldSize > 0 && oldSize < size;
    return formatAddCheckpoint({
      oldSize,
      proof: isProved ? await consistencyProof(oldSize, size, read, TREE.hashNodes) : [],
      note,
    });
  };
  return { text, note, request };
}

function witnessed(trees = new Map<string, WitnessedTree>()) {
  const recall = (origin: string) => trees.get(origin);
  const remember = (origin: string, tree: WitnessedTree) => void trees.set(origin, tree);
  return { ...witness, logs: [log.key], recall, remember, now: () => 1_893_456_000 };
}

describe('a witness', () => {
  it('cosigns the first checkpoint, and then those that extend it', async () => {
    const options = witnessed();
    for (const [oldSize, size] of [
      [0, 3],
      [3, 3],
      [3, 8],
      [8, 11],
    ] as const) {
      const { text, request } = await logOf(size);
      const reply = addCheckpoint(options, await request(oldSize));
      expect([reply.status, reply.type]).toEqual([200, 'text/plain; charset=utf-8']);
      const [cosignature = expect.fail('no signature line')] = parseSignatureLines(reply.body) ?? [];
      expect(isNoteSignature(text, witness.key, cosignature)).toBe(true);
      expect(options.recall(log.key.name)?.size).toBe(size);
    }
  });

  it('responds as the specification says to what it does not cosign', async () => {
    const options = witnessed();
    const eight = await logOf(8);
    addCheckpoint(options, await eight.request(0));
    const larger = await logOf(11);
    const forked = await logOf(11, 100);
    const refusals: readonly (readonly [string, string, number, RegExp])[] = [
      ['nothing', '', 400, /body/],
      ['no checkpoint', 'old 8\n\nnothing\n', 400, /body/],
      ['an old size with a leading zero', (await larger.request(8)).replace('old 8', 'old 08'), 400, /body/],
      ['a larger old size', (await larger.request(8)).replace('old 8', 'old 12'), 400, /larger/],
      ['an unknown log', (await larger.request(8)).replace(log.key.name, 'elsewhere.test/log'), 404, /not known/],
      ['a wrong signature', (await larger.request(8)).replace('\n11\n', '\n12\n'), 403, /signed/],
      ['another old size', await larger.request(3), 409, /^8\n$/],
      ['an older checkpoint', await (await logOf(5)).request(3), 409, /^8\n$/],
      ['another root at the same size', await (await logOf(8, 100)).request(8), 409, /another root/],
      ['a fork', await forked.request(8), 422, /extends/],
      ['no proof', (await larger.request(0)).replace('old 0', 'old 8'), 422, /extends/],
      ['a proof from nothing', (await larger.request(8)).replace('old 8', 'old 8\n'), 400, /body/],
    ];
    for (const [what, request, status, body] of refusals) {
      const reply = addCheckpoint(options, request);
      expect([what, reply.status]).toEqual([what, status]);
      expect(reply.body).toMatch(body);
      if (/^\d/.test(reply.body)) expect(reply.type).toBe('text/x.tlog.size');
    }
    expect(options.recall(log.key.name)?.size).toBe(8);
  });

  it.each([
    ['another root at one size', 11, 11],
    ['a proof that the log has made for another history', 11, 14],
  ])('proves that a log forked by %s', async (_what, from, to) => {
    const proofs: Misbehaviour[] = [];
    const options = { ...witnessed(), onFork: (proof: Misbehaviour) => void proofs.push(proof) };
    addCheckpoint(options, await (await logOf(from)).request(0));
    const forked = await (await logOf(to, 100)).request(from);
    addCheckpoint(options, forked.replace(/\n[^\n]+\n\n/, '\n\n'));
    if (from !== to) expect(proofs).toEqual([]);
    addCheckpoint(options, forked);
    const { checkpointKeys, sentence } = await verifyMisbehaviour(proofs.at(-1) ?? expect.fail('no proof'));
    expect(checkpointKeys).toEqual([formatVerifierKey(log.key)]);
    expect(sentence).toContain(`of size ${from} `);
  });

  it('remembers over a restart, and does not start on a damaged state', async () => {
    const [path, keyPath] = [join(temporaryFolder(), 'state.json'), join(temporaryFolder(), 'key.json')];
    const state = new WitnessState(path);
    const tree = { size: 7, root: new Uint8Array(32).fill(1), note: 'a note' };
    state.remember('a.test', tree);
    expect(new WitnessState(path).recall('a.test')).toEqual(tree);
    writeFileSync(path, '{');
    expect(() => new WitnessState(path)).toThrow('damaged');
    expect(() => openWitnessKey(keyPath, undefined, () => randomBytes(32))).toThrow('not found');
    const made = openWitnessKey(keyPath, 'w.test', () => randomBytes(32));
    expect(statSync(keyPath).mode & 0o777).toBe(0o600);
    expect(Buffer.from(openWitnessKey(keyPath, undefined, () => randomBytes(32)).seed)).toEqual(made.seed);
    expect(() => openWitnessKey(keyPath, 'other.test', () => randomBytes(32))).toThrow('w.test');
  });
});

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  atEnd(() => void server.close().closeAllConnections());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** A service with these witnesses, whose log lines are kept. */
async function asking(witnesses: readonly string[]) {
  const policy = join(temporaryFolder(), 'policy.txt');
  writeFileSync(policy, `${witnesses.join('\n')}\nquorum none\n`);
  const lines: string[] = [];
  const logger = pino({ level: 'info' }, { write: (line: string) => void lines.push(line) });
  const metricsPort = String(20_000 + (process.pid % 10_000));
  const running = await run({ WITNESS_POLICY_FILE: policy, METRICS_PORT: metricsPort }, undefined, logger);
  const metric = async (name: string) => {
    const text = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text();
    return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1]);
  };
  const checkpoint = async () => {
    const { log: named } = (await (await fetch(running.url)).json()) as {
      log: { prefix: string; checkpointKey: string };
    };
    const response = await fetch(running.url + named.prefix + '/checkpoint');
    return { note: response.ok ? await response.text() : '', key: named.checkpointKey };
  };
  return { running, lines, metric, checkpoint };
}

describe('a service with witnesses', () => {
  it('adds their cosignatures to its checkpoints, one after the other', { timeout: 60_000 }, async () => {
    const trees = new Map<string, WitnessedTree>();
    const logs: NoteKey[] = [];
    const server = createWitnessServer({ ...witnessed(trees), logs });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    atEnd(() => void server.close().closeAllConnections());
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const { running, checkpoint, metric } = await asking([`witness W1 ${formatVerifierKey(witness.key)} ${url}/`]);
    logs.push(parseVerifierKey((await checkpoint()).key) ?? expect.fail('no key'));
    for (const round of [1, 2, 3]) {
      await newAgent(running);
      await eventually(async () => {
        const note = parseNote((await checkpoint()).note);
        const cosignature = note?.signatures.find(({ name }) => name === witness.key.name);
        expect(note?.text.split('\n')[1]).toBe(String(round));
        expect(isNoteSignature(note?.text ?? '', witness.key, cosignature ?? expect.fail('not cosigned'))).toBe(true);
      }, 15_000);
    }
    expect(await metric('chambers_witness_cosignatures_total')).toBe(3);
    expect(await metric('chambers_witness_failures_total')).toBe(0);
  });

  it('counts a cosignature that comes after the next checkpoint as late, and says so', {
    timeout: 60_000,
  }, async () => {
    const logs: NoteKey[] = [];
    const options = { ...witnessed(new Map()), logs };
    const replies: (() => void)[] = [];
    const url = await serve(async (request, response) => {
      const { status, body } = addCheckpoint(options, await text(request));
      replies.push(() => void response.writeHead(status).end(body));
    });
    const asked = await asking([`witness W1 ${formatVerifierKey(witness.key)} ${url}`]);
    const { running, checkpoint, metric, lines } = asked;
    logs.push(parseVerifierKey((await checkpoint()).key) ?? expect.fail('no key'));
    await newAgent(running);
    await eventually(() => expect(replies).toHaveLength(1), 15_000);
    await newAgent(running);
    await eventually(async () => expect((await checkpoint()).note).toMatch(/\n2\n/), 15_000);
    replies[0]?.();
    await eventually(async () => expect(await metric('chambers_witness_late_total')).toBe(1), 15_000);
    expect(await metric('chambers_witness_cosignatures_total')).toBe(0);
    expect(lines.join('')).toContain('it came after the next checkpoint was published');
    // The log rests: the next cosignature is in time.
    await eventually(() => expect(replies).toHaveLength(2), 15_000);
    replies[1]?.();
    await eventually(async () => expect((await checkpoint()).note).toContain('witness.test/w1'), 15_000);
  });

  it('publishes as ever with witnesses that are silent, away, huge or talk nonsense', { timeout: 60_000 }, async () => {
    const size =
      (body: string): RequestListener =>
      (_, response) =>
        void response.writeHead(409, { 'content-type': 'text/x.tlog.size' }).end(body);
    const bad: readonly RequestListener[] = [
      () => {},
      (_, response) => void response.end('— nobody at.all\n'),
      (_, response) => void response.end(Buffer.alloc(1_000_000, 'a')),
      (_, response) => void response.writeHead(500).end(),
      size('999999\n'),
      size('-1\n'),
    ];
    const urls = [...(await Promise.all(bad.map(serve))), 'http://127.0.0.1:1'];
    const lines = urls.map((url, i) => {
      const { key } = keyed(`witness.test/bad${i}`, NOTE_KEY_TYPES.cosignature);
      return `witness B${i} ${formatVerifierKey(key)} ${url}`;
    });
    const { running, checkpoint, metric, lines: logged } = await asking(lines);
    await newAgent(running);
    await eventually(async () => expect((await checkpoint()).note).toMatch(/\n1\n/), 15_000);
    await newAgent(running);
    await eventually(async () => expect((await checkpoint()).note).toMatch(/\n2\n/), 15_000);
    await eventually(async () => expect(await metric('chambers_witness_failures_total')).toBe(urls.length), 15_000);
    expect((parseNote((await checkpoint()).note)?.signatures ?? []).map(({ name }) => name)).toHaveLength(1);
    expect(logged.join('')).toMatch('it says that it cosigned a checkpoint of size 999999');
    expect(await metric('chambers_checkpoint_ok')).toBe(1);
  });

  it('does not start with a policy that is none', async () => {
    const policy = join(temporaryFolder(), 'policy.txt');
    writeFileSync(policy, 'witness W1 nothing\nquorum W1\n');
    await expect(run({ WITNESS_POLICY_FILE: policy })).rejects.toThrow(/line 1/);
    expect(existsSync(policy)).toBe(true);
    await expect(run({ WITNESS_POLICY_FILE: '/nowhere/policy.txt' })).rejects.toThrow(/nowhere/);
  });
});

describe('a policy', () => {
  const witnessLine = (name: string) =>
    `witness ${name} ${formatVerifierKey(keyed(`${name}.test`, NOTE_KEY_TYPES.cosignature).key)}`;

  it('is that of the specification: groups within groups', () => {
    const text = [
      '# two of X and one of Y',
      `log ${formatVerifierKey(log.key)} https://log.test/`,
      ...['X1', 'X2', 'X3', 'Y1', 'Y2'].map(witnessLine),
      'group X 2 X1 X2 X3',
      '  group\tY any Y1 Y2  ',
      'group X-and-Y all X Y',
      '',
      'quorum X-and-Y',
    ].join('\n');
    const { logs, witnesses, isQuorum } = parsePolicy(`${text}\n`);
    expect([logs.length, witnesses.map(({ name }) => name)]).toEqual([1, ['X1', 'X2', 'X3', 'Y1', 'Y2']]);
    expect(isQuorum(new Set(['X1', 'X3', 'Y2']))).toBe(true);
    expect(isQuorum(new Set(['X1', 'X2', 'X3']))).toBe(false);
    expect(isQuorum(new Set(['X1', 'Y1', 'Y2']))).toBe(false);
    expect(parsePolicy('quorum none\n').isQuorum(new Set())).toBe(true);
  });

  it.each([
    ['no quorum', 'log'],
    ['an unknown keyword', 'quorums none'],
    ['two quorums', 'quorum none\nquorum none'],
    ['a name that is not defined before', 'quorum X'],
    ['a group that needs more than it has', `${witnessLine('X')}\ngroup G 2 X\nquorum G`],
    ['a member twice', `${witnessLine('X')}\ngroup G any X X\nquorum G`],
    ['the name none', `${witnessLine('none')}\nquorum none`],
    ['the key of a log for a witness', `witness X ${formatVerifierKey(log.key)}\nquorum none`],
    ['the key of a witness for a log', `log ${formatVerifierKey(witness.key)}\nquorum none`],
    ['a key twice', `log ${formatVerifierKey(log.key)}\nlog ${formatVerifierKey(log.key)}\nquorum none`],
    ['a carriage return', 'quorum none\r\n'],
  ])('with %s is none', (_, text) => {
    expect(() => parsePolicy(text)).toThrow();
  });
});
