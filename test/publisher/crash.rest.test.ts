// A publisher that is killed at random never contradicts a published checkpoint. CHECKPOINT_KILLS sets the number of kills.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { openSqliteStore } from '../../src/log/sqlite/store.ts';
import { type Checkpoint, parseCheckpoint } from '../../src/tlog/checkpoint.ts';
import { parseNote } from '../../src/tlog/note.ts';
import { openGrowingTree, rootOfTiles } from '../../src/tlog/tiled-tree.ts';
import { temporaryDatabase } from '../kit/temporary.ts';

const PROGRAM = fileURLToPath(new URL('publisher-program.ts', import.meta.url));
const KILLS = Number(process.env['CHECKPOINT_KILLS'] ?? 6);
const UNTIL_KILLED_MS_MAX = 150;

function toCheckpoint(note: string): Checkpoint {
  return parseCheckpoint(parseNote(note)?.text ?? '') ?? expect.fail(`no checkpoint: ${note}`);
}

/** Resolves to the notes published before the kill. */
async function runUntilKilled(path: string): Promise<readonly Checkpoint[]> {
  const child = spawn(process.execPath, [PROGRAM, path], { stdio: ['ignore', 'pipe', 'inherit'] });
  let out = '';
  child.stdout.on('data', (chunk) => {
    out += chunk;
  });
  await once(child.stdout, 'data');
  await sleep(Math.random() * UNTIL_KILLED_MS_MAX);
  child.kill('SIGKILL');
  await once(child, 'close');
  const lines = out.split('\n');
  // The last line may be truncated.
  return lines.slice(0, -1).map((line) => toCheckpoint(JSON.parse(line)));
}

it(`a publisher never shrinks or forks its checkpoints over ${KILLS} kills`, {
  timeout: 60_000 + KILLS * 5_000,
}, async () => {
  const path = temporaryDatabase();
  let published = 0;
  let [last, roots]: [number, Map<number, string>] = [0, new Map()];
  for (let kill = 0; kill < KILLS; kill++) {
    for (const { size, root } of await runUntilKilled(path)) {
      expect(size).toBeGreaterThan(last);
      [last, published] = [size, published + 1];
      roots.set(size, Buffer.from(root).toString('hex'));
    }
    const store = openSqliteStore(path);
    try {
      const stored = toCheckpoint((await store.tree.checkpoint())?.note ?? '');
      expect(stored.size).toBeGreaterThanOrEqual(last);
      expect(stored.size).toBeLessThanOrEqual(await store.log.lastPlace());
      last = stored.size;
      // The root is computed from the lines alone, without tiles.
      const tree = await openGrowingTree(0, async (refs) => refs.map(() => undefined));
      const leaves = await store.tree.readLeaves(0, stored.size);
      for (let at = 0; at < leaves.length; at += 32) tree.add(leaves.subarray(at, at + 32));
      expect(Buffer.from(tree.root())).toEqual(Buffer.from(stored.root));
      for (const [size, root] of [...roots].slice(-20)) {
        expect(Buffer.from(await rootOfTiles(size, store.tree.readTiles)).toString('hex')).toBe(root);
      }
    } finally {
      await store.close();
    }
  }
  console.log(`${KILLS} kills: ${published} checkpoints, the last one of ${last} lines`);
});
