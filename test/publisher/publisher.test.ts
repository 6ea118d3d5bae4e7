// Published checkpoints, tiles and proofs: they cover every line, and readers can verify them.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { leafHash } from '../../src/crypto/merkle.ts';
import { consistencyProof, verifyConsistency } from '../../src/crypto/merkle-proof.ts';
import { publicKeyOf } from '../../src/keys/private-key.ts';
import { SOLE_LEASE, type Store } from '../../src/log/store.ts';
import { readCheckpointCopy, writeCheckpointCopy } from '../../src/publisher/checkpoint-copy.ts';
import { PublishedHistory, SecondHistory } from '../../src/publisher/published-history.ts';
import {
  checkpointSigner,
  LEAVES_PER_CHECKPOINT_MAX,
  publishOnce,
  TreeDamaged,
} from '../../src/publisher/publisher.ts';
import { parseVerifierKey } from '../../src/tlog/note.ts';
import { openCheckpoint, verifyTlogProof } from '../../src/tlog/proof.ts';
import { parseEntries, tilePath, tilesBetween } from '../../src/tlog/tile.ts';
import { nodesOfTiles, rootOfTiles } from '../../src/tlog/tiled-tree.ts';
import { TREE } from '../../src/tlog/tree.ts';
import { openChamber } from '../kit/chambers.ts';
import { Signer } from '../kit/signer.ts';
import { openTestStore } from '../kit/store.ts';
import { atEnd, temporaryFolder } from '../kit/temporary.ts';
import { registrationOf, TestService } from '../kit/test-service.ts';
import { entry } from '../log/entries.ts';

async function openReader(service: TestService) {
  const { log } = await service.must('GET', '/');
  const prefix: string = log.prefix;
  const key = parseVerifierKey(log.checkpointKey) ?? expect.fail('no verifier key');
  const get = async (path: string) => {
    const response = await service.app.request(path, {}, {});
    const bytes = new Uint8Array(await response.arrayBuffer());
    return { status: response.status, bytes, text: Buffer.from(bytes).toString(), headers: response.headers };
  };
  const checkpoint = async () => {
    const { text } = await get(`${prefix}/checkpoint`);
    return openCheckpoint(text, key) ?? expect.fail(`no checkpoint: ${text}`);
  };
  return { prefix, key, get, checkpoint };
}

async function published(moves = 3) {
  const service = new TestService();
  const members = [await service.agent(), await service.agent()];
  const chamberId = await openChamber(service, members);
  for (let move = 3; move < moves; move++) members.push(await service.agent());
  const reader = await openReader(service);
  await service.publish();
  return { service, members, chamberId, reader };
}

describe('a checkpoint', () => {
  it('a checkpoint is signed by the key that GET / names, under the origin of the log', async () => {
    const { service, reader } = await published();
    const checkpoint = await reader.checkpoint();
    expect(checkpoint.origin).toBe(`forum.test/log/${service.log.logId}`);
    expect(checkpoint.size).toBe(await service.log.lastPlace());
    const { headers } = await reader.get(`${reader.prefix}/checkpoint`);
    expect(headers.get('content-type')).toBe('text/plain; charset=utf-8');
    expect(headers.get('cache-control')).toBe('public, max-age=1');
  });

  it('a checkpoint covers every line, and the next checkpoint extends it', async () => {
    const { service, chamberId, reader } = await published();
    const before = await reader.checkpoint();
    const late = await service.agent();
    await service.must('POST', `/chambers/${chamberId}/join`, { by: late });
    await service.publish();
    const after = await reader.checkpoint();
    expect(after.size).toBe(before.size + 2);
    const read = nodesOfTiles(service.store.tree.readTiles);
    const proof = await consistencyProof(before.size, after.size, read, TREE.hashNodes);
    const roots = { from: before.size, to: after.size, fromRoot: before.root, toRoot: after.root };
    expect(verifyConsistency({ ...roots, proof, hashNodes: TREE.hashNodes })).toBe(true);
  });

  it('a checkpoint does not change without new lines', async () => {
    const { service, reader } = await published();
    const { text } = await reader.get(`${reader.prefix}/checkpoint`);
    await service.publish();
    expect((await reader.get(`${reader.prefix}/checkpoint`)).text).toBe(text);
  });

  it('a checkpoint that does not exist or belongs to another log returns 404', async () => {
    const service = new TestService();
    const { prefix } = await openReader(service);
    expect((await service.request('GET', `${prefix}/checkpoint`)).status).toBe(404);
    expect((await service.request('GET', `/log/${'0'.repeat(32)}/checkpoint`)).status).toBe(404);
    expect((await service.request('GET', `/log/${'0'.repeat(32)}/index`)).status).toBe(404);
  });
});

describe('tiles', () => {
  it('the tiles have the root of the checkpoint, and their entries are the leaves of the lines in the index', async () => {
    const { service, reader } = await published(20);
    const { size, root } = await reader.checkpoint();
    const get = async (tile: Parameters<typeof tilePath>[0]) => {
      const reply = await reader.get(`${reader.prefix}/${tilePath(tile)}`);
      expect(reply.status).toBe(200);
      expect(reply.headers.get('content-type')).toBe('application/octet-stream');
      expect(reply.headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
      return reply.bytes;
    };
    const tiles = new Map<string, Uint8Array>();
    for (const tile of tilesBetween(0, 0, size)) tiles.set(`0/${tile.index}`, await get(tile));
    expect(
      await rootOfTiles(size, async (refs) => refs.map(({ level, index }) => tiles.get(`${level}/${index}`))),
    ).toEqual(Uint8Array.from(root));
    const [bundle] = tilesBetween('entries', 0, size);
    const entries = parseEntries(await get(bundle ?? expect.fail('there are entries'))) ?? new Uint8Array();
    const { text, headers } = await reader.get(`${reader.prefix}/index?limit=10000`);
    expect(headers.get('content-type')).toMatch('application/x-ndjson');
    const leaves = text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(leaves).toHaveLength(size);
    for (const [i, { index, chamberId, did, eventId }] of leaves.entries()) {
      const { ndjson } = await service.log.readPage(chamberId ?? did, eventId - 1, 1);
      expect(index).toBe(i);
      expect(Buffer.from(entries.subarray(32 * i, 32 * i + 32))).toEqual(Buffer.from(leafHash(ndjson.subarray(0, -1))));
    }
    const rest = await reader.get(`${reader.prefix}/index?after=${size - 2}`);
    expect(
      rest.text
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line).index),
    ).toEqual([size - 2, size - 1]);
  });

  it('tiles that the tree does not have, or with a wrong path, return 404', async () => {
    const { reader } = await published();
    const { size } = await reader.checkpoint();
    for (const path of [
      'tile/0/000',
      `tile/0/000.p/${size + 1}`,
      'tile/0/001.p/1',
      'tile/1/000.p/1',
      'tile/entries/000',
      'tile/0/x000/000.p/1',
      'tile/0/x001/000',
      'tile/00/000.p/1',
      'tile/0/000.p/0',
      'tile/0/000.p/01',
      'tile/0/%30%30%30.p/1',
      'tile/64/000',
      'tile/',
      'tile/0/000.p/1/',
    ]) {
      expect([path, (await reader.get(`${reader.prefix}/${path}`)).status]).toEqual([path, 404]);
    }
    expect((await reader.get(`${reader.prefix}/tile/0/000.p/1`)).status).toBe(200);
  });
});

describe('a tlog-proof', () => {
  it('a tlog-proof of every event of chambers and accounts verifies with only the key', async () => {
    const { service, members, chamberId, reader } = await published();
    for (const [i, line] of (await service.lines(chamberId)).entries()) {
      const { text, headers } = await reader.get(`/chambers/${chamberId}/events/${i + 1}/tlog-proof`);
      expect(headers.get('content-type')).toBe('text/plain; charset=utf-8');
      expect(verifyTlogProof(text, leafHash(Buffer.from(line)), reader.key)?.size).toBe(7 - 2);
      expect(verifyTlogProof(text, leafHash(Buffer.from(`${line} `)), reader.key)).toBeUndefined();
    }
    const did = members[0]?.did ?? '';
    const { ndjson } = await service.log.readPage(did, 0, 1);
    const { text } = await reader.get(`/agents/${did}/events/1/tlog-proof`);
    expect(verifyTlogProof(text, leafHash(ndjson.subarray(0, -1)), reader.key)).toBeDefined();
  });

  it('a tlog-proof of an unknown event, or one that no checkpoint covers yet, returns 404', async () => {
    const { service, members, chamberId } = await published();
    const status = async (path: string) => (await service.request('GET', path)).status;
    expect(await status(`/chambers/${chamberId}/events/9/tlog-proof`)).toBe(404);
    expect(await status('/chambers/9/events/1/tlog-proof')).toBe(404);
    expect(await status('/chambers/x/events/1/tlog-proof')).toBe(404);
    expect(await status('/agents/nobody/events/1/tlog-proof')).toBe(404);
    expect(await status(`/agents/${members[0]?.did}/events/0/tlog-proof`)).toBe(404);
    const late = await service.agent();
    const { body } = await service.request('GET', `/agents/${late.did}/events/1/tlog-proof`);
    expect(body).toMatchObject({ error: 'FORUM_ERR_NOT_FOUND' });
    expect(body.detail).toMatch('no checkpoint covers the event yet');
  });
});

const seed = new Uint8Array(32).fill(7);
const signing = { seed, publicKey: publicKeyOf(seed) };

function store(path?: string): Store {
  const opened = openTestStore(path);
  atEnd(() => opened.close());
  return opened;
}

describe('the publisher', () => {
  const publisher = ({ tree, log }: Store) => ({
    tree,
    lease: SOLE_LEASE,
    signer: async () => checkpointSigner(`forum.test/log/${log.logId}`, signing),
  });

  it('the publisher catches up in steps with a log that had no checkpoints', { timeout: 60_000 }, async () => {
    const opened = store(':memory:');
    const lines = LEAVES_PER_CHECKPOINT_MAX + 700;
    const entries = Array.from({ length: lines }, (_, i) => entry(`did:key:z${i}`, 1));
    await opened.log.append({ entries });
    expect((await publishOnce(publisher(opened)))?.size).toBe(LEAVES_PER_CHECKPOINT_MAX);
    expect((await publishOnce(publisher(opened)))?.size).toBe(lines);
    expect(await publishOnce(publisher(opened))).toBeUndefined();
  });

  it('the publisher publishes nothing without the lease, or after another publisher', async () => {
    const opened = store(':memory:');
    await opened.log.append({ entries: [entry(1, 1)] });
    const without = { ...publisher(opened), lease: { ...SOLE_LEASE, token: undefined } };
    expect(await publishOnce(without)).toBeUndefined();
    // The publisher freezes after computing its checkpoint, and another one publishes before the first writes.
    const { tree } = opened;
    const frozen = {
      ...publisher(opened),
      tree: {
        ...tree,
        checkpoint: () => tree.checkpoint(),
        readTiles: tree.readTiles,
        readLeaves: tree.readLeaves.bind(tree),
        publish: async (publication: Parameters<typeof tree.publish>[0]) => {
          await opened.log.append({ entries: [entry(1, 2)] });
          await publishOnce(publisher(opened));
          return tree.publish(publication);
        },
      } as unknown as Store['tree'],
    };
    expect(await publishOnce(frozen)).toBeUndefined();
    expect((await tree.checkpoint())?.size).toBe(2);
  });

  it('the publisher signs nothing if the tiles do not match its last checkpoint', async () => {
    const opened = store(':memory:');
    await opened.log.append({ entries: [entry(1, 1), entry(1, 2)] });
    const first = await publishOnce(publisher(opened));
    await opened.log.append({ entries: [entry(1, 3)] });
    const { tree } = opened;
    const changed = (readTiles: Store['tree']['readTiles']) => ({
      ...publisher(opened),
      tree: { checkpoint: () => tree.checkpoint(), readTiles } as unknown as Store['tree'],
    });
    const flipped: Store['tree']['readTiles'] = async (refs) =>
      (await tree.readTiles(refs)).map((bytes) => bytes && Uint8Array.from(bytes, (byte) => byte ^ 1));
    await expect(publishOnce(changed(flipped))).rejects.toThrow(TreeDamaged);
    await expect(publishOnce(changed(async (refs) => refs.map(() => undefined)))).rejects.toThrow(TreeDamaged);
    expect(await tree.checkpoint()).toEqual(first);
  });

  it('the publisher reports its lag, and damaged tiles that prevent it from signing', async () => {
    const { service } = await published();
    const { composed, store: opened } = service;
    expect(composed.publishing.state()).toMatchObject({ ok: true, isTreeDamaged: false, size: 5 });
    const checkpoint = (await opened.tree.checkpoint()) ?? expect.fail('no checkpoint');
    const tiles = [{ level: 0, index: 0, bytes: new Uint8Array(5 * 32) }];
    await opened.tree.publish({ from: 5, checkpoint, tiles, lease: SOLE_LEASE.token ?? '' });
    await service.agent();
    await composed.publishing.round();
    const { lagSeconds, ...state } = composed.publishing.state();
    expect(state).toMatchObject({ ok: false, isTreeDamaged: true, size: 5 });
    await composed.publishing.round();
    expect(composed.publishing.state().lagSeconds).toBeGreaterThan(lagSeconds);
    expect(service.defects.splice(0).map(String)).toEqual([expect.stringContaining('no checkpoint can be published')]);
  });

  describe('the publisher’s copy of the last checkpoint', () => {
    const path = () => join(temporaryFolder(), 'keys.json.checkpoint');

    async function copied(lines: number) {
      const opened = store(':memory:');
      for (let eventId = 1; eventId <= lines; eventId++) await opened.log.append({ entries: [entry(1, eventId)] });
      const checkpoint = await publishOnce(publisher(opened));
      const file = path();
      await writeCheckpointCopy(file, checkpoint?.note ?? '');
      return { opened, file, note: checkpoint?.note };
    }

    const history = (file: string | undefined, { logId }: Store['log'], keys = [signing]) =>
      new PublishedHistory({ logId, path: file, keys: () => keys });

    /** A different log with the same id. */
    async function otherLines(lines: number) {
      const other = store(':memory:');
      const line = Buffer.from('{}');
      const entries = Array.from({ length: lines }, (_, i) => entry(1, i + 1, { line }));
      await other.log.append({ entries });
      return other;
    }

    it('the publisher accepts a log that extends its copy of the checkpoint, even if the database has an earlier one', async () => {
      const { opened, file, note } = await copied(3);
      const { tree, log } = opened;
      expect(readCheckpointCopy(file)).toBe(note);
      await history(file, log).prove(tree);
      await log.append({ entries: [entry(1, 4)] });
      await history(file, log).prove(tree);
      const behind = { ...tree, checkpoint: async () => undefined, readTiles: tree.readTiles };
      await history(file, log).prove({ ...behind, readLeaves: tree.readLeaves.bind(tree) } as unknown as Store['tree']);
      await history(path(), log).prove(tree);
    });

    it('the publisher rejects a log that is behind its copy of the checkpoint', async () => {
      const { file, opened } = await copied(3);
      const behind = store(':memory:');
      await behind.log.append({ entries: [entry(1, 1), entry(1, 2)] });
      await expect(history(file, opened.log).prove(behind.tree)).rejects.toThrow(
        /^the log has 2 lines, and .* published over 3: restore a newer copy of the database, or .*: chambers new-log/,
      );
    });

    it('the publisher rejects the checkpoint of another log unless its log continues that one', async () => {
      const { opened, file, note = '' } = await copied(3);
      const another = { ...opened.log, logId: '1'.repeat(32) };
      const checkpoint = async (logId?: string) => (logId === opened.log.logId ? { size: 3, note } : undefined);
      const made = { ...opened.tree, checkpoint } as unknown as Store['tree'];
      await expect(history(file, another).prove(made)).resolves.toBeUndefined();
      const unrelated = { ...opened.tree, checkpoint: async () => undefined } as unknown as Store['tree'];
      await expect(history(file, another).prove(unrelated)).rejects.toThrow(
        `is a checkpoint of log ${opened.log.logId}, but the database has log 1111`,
      );
    });

    it('the publisher rejects a log with other lines, and a file that is not a checkpoint of the log', async () => {
      const { opened, file, note = '' } = await copied(3);
      const { tree } = await otherLines(4);
      await expect(history(file, opened.log).prove(tree)).rejects.toThrow('over other lines than the first 3');
      writeFileSync(file, note.replace('\n3\n', '\n2\n'));
      await expect(history(file, opened.log).prove(tree)).rejects.toThrow('is not a checkpoint signed by a key');
      writeFileSync(file, '');
      await expect(history(file, opened.log).prove(tree)).rejects.toThrow('is not a checkpoint signed by a key');
    });

    it('the publisher keeps neither a smaller nor a contradicting checkpoint, and serves its last one', async () => {
      const { opened, file, note } = await copied(3);
      const kept = history(file, opened.log);
      await kept.keep(opened.tree);
      for (const lines of [2, 3, 5]) {
        const other = await otherLines(lines);
        await publishOnce(publisher(other));
        await expect(kept.keep(other.tree)).rejects.toThrow(SecondHistory);
        expect([readCheckpointCopy(file), (await kept.newest(other.tree))?.note]).toEqual([note, note]);
      }
      // Another node that shares the file has seen a larger checkpoint.
      await opened.log.append({ entries: [entry(1, 4)] });
      const next = await publishOnce(publisher(opened));
      await history(file, opened.log).keep(opened.tree);
      expect(readCheckpointCopy(file)).toBe(next?.note);
      const between = await otherLines(4);
      await publishOnce(publisher(between));
      await expect(kept.prove(between.tree)).rejects.toThrow(SecondHistory);
    });

    it('the publisher does not overwrite a larger checkpoint that another node copied meanwhile', async () => {
      const { opened, file, note } = await copied(3);
      const { tree, log } = opened;
      await log.append({ entries: [entry(1, 4)] });
      const own = await publishOnce(publisher(opened));
      await log.append({ entries: [entry(1, 5)] });
      const confirm = tree.confirm.bind(tree);
      let others: string | undefined;
      tree.confirm = async () => {
        tree.confirm = confirm;
        others = (await publishOnce(publisher(opened)))?.note;
        await history(file, log).keep(tree);
      };
      await history(file, log).keep(tree);
      expect(new Set([note, own?.note, others]).size).toBe(3);
      expect(readCheckpointCopy(file)).toBe(others);
    });

    it('on a second history, the publisher signs nothing and the service accepts no moves', async () => {
      const { service } = await published();
      const { composed, forum, store: opened } = service;
      const before = await opened.tree.checkpoint();
      const other = await otherLines(5);
      const published5 = await publishOnce(publisher(other));
      const { tree } = opened as { tree: Store['tree'] };
      const onOneServer = tree.onOneServer;
      tree.onOneServer = (work) => work(other.tree);
      await composed.publishing.round();
      expect(composed.publishing.state()).toMatchObject({ ok: false, hasSecondHistory: true });
      expect(await other.tree.checkpoint()).toEqual(published5);
      const { status, body } = await service.request('POST', '/register', { body: registrationOf(new Signer()) });
      expect([status, body.error]).toEqual([503, 'FORUM_ERR_UNAVAILABLE']);
      expect(body.detail).toMatch('the log is not the one that was published');
      expect((await service.request('GET', '/ready')).status).toBe(503);
      expect((await service.request('GET', '/health')).body).toMatchObject({
        ok: false,
        log: { reason: expect.stringContaining('not the one that was published') },
      });
      expect(service.defects.splice(0).map(String)).toEqual([expect.stringContaining('chambers new-log')]);
      tree.onOneServer = onOneServer;
      await composed.publishing.round();
      expect(forum.writeFailure).toBeUndefined();
      await service.agent();
      expect(before?.size).toBe(5);
    });
  });
});
