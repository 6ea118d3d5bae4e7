// A long log with its tiles: the time to start, compared with the same log without tiles, and the time per tile.
import { constants, copyFileSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import Database from 'better-sqlite3';
import { ENTRIES, levelsOf, tilePath, tilesBetween } from '../../src/tlog/tile.ts';
import { latenciesOf, median } from './figures.ts';
import { manyChambers } from './logs/shapes.ts';
import { storedLog } from './logs/stored-log.ts';
import type { Options } from './options.ts';
import { drive, withFolder, withServerOn } from './processes.ts';
import type { Report } from './report.ts';
import { measureInRounds, rowOf } from './rounds.ts';
import { SERVICE } from './sides.ts';
import { bound, compare } from './verdicts.ts';

const STARTS = 5;
const POLL_MS = 500;
/** Sufficient for 32,768 lines per second on an idle machine. */
const PUBLISHED_MS_MAX = 600_000;

export async function benchTiles(options: Options): Promise<Report> {
  const log = await storedLog(manyChambers(options));
  return withFolder(async (folder) => {
    const [tiled, plain] = ['tiled', 'plain'].map((name) => join(folder, name, 'bench.db')) as [string, string];
    for (const path of [tiled, plain]) copyLog(log, path);
    process.stderr.write('  publishing the checkpoint over all lines\n');
    const size = await publish(tiled);
    const [withTiles, without] = await measureInRounds(
      [
        { name: `start on ${size} lines, with tiles`, measure: () => startMillis(tiled) },
        { name: `start on ${size} lines, without`, measure: () => startMillis(plain, forget) },
      ],
      options.runs,
    );
    const [tiles] = await measureInRounds([{ name: 'a tile', measure: () => readTiles(tiled, size) }], options.runs);
    if (withTiles === undefined || without === undefined || tiles === undefined)
      throw new Error('nothing was measured');
    const [of, to] = [withTiles, without].map((each) => rowOf(each, 'ms', (millis) => millis));
    const tails = rowOf(tiles, 'ms p99', ({ p99 }) => p99);
    if (of === undefined || to === undefined) throw new Error('starts on two logs must be measured');
    return {
      bench: `tiles (medians of ${STARTS} starts; every tile of the tree once, on one connection)`,
      rows: [of, to, rowOf(tiles, 'ms p50', ({ p50 }) => p50), tails, rowOf(tiles, 'ms slowest', ({ max }) => max)],
      verdicts: [
        compare({ what: 'start: with tiles / without', of, to, target: { is: 'at most', value: 1.1 } }),
        bound({ what: 'a tile, p99', of: tails, target: { is: 'at most', value: 5 } }),
      ],
    };
  });
}

function copyLog(from: string, to: string): void {
  mkdirSync(dirname(to));
  copyFileSync(from, to, constants.COPYFILE_FICLONE);
  forget(to);
}

/** Turns the log into one that was never published. The key file stays; without it, a start would create one. */
function forget(path: string): void {
  const db = new Database(path);
  db.exec('DELETE FROM tiles; DELETE FROM checkpoints');
  db.close();
  for (const name of readdirSync(dirname(path))) {
    if (name.endsWith('.checkpoint')) rmSync(join(dirname(path), name));
  }
}

/** Publishes the log, and returns the number of lines under the checkpoint. */
function publish(path: string): Promise<number> {
  return withServerOn(SERVICE, path, async () => {
    const db = new Database(path, { readonly: true });
    const read = db.prepare<[], { readonly lines: number; readonly size: number }>(
      'SELECT (SELECT max(position) FROM events) AS lines, (SELECT coalesce(max(size), 0) FROM checkpoints) AS size',
    );
    try {
      for (const endsAt = performance.now() + PUBLISHED_MS_MAX; performance.now() < endsAt; await sleep(POLL_MS)) {
        const { lines, size } = read.get() ?? { lines: 0, size: 0 };
        if (size === lines && size > 0) return size;
      }
      throw new Error('the checkpoint was not published in time');
    } finally {
      db.close();
    }
  });
}

async function startMillis(path: string, before: (path: string) => void = () => {}): Promise<number> {
  const starts: number[] = [];
  for (let count = 0; count < STARTS; count++) {
    before(path);
    starts.push(await withServerOn(SERVICE, path, async (running) => running.startMillis));
  }
  return median(starts);
}

function readTiles(path: string, size: number) {
  return withServerOn(SERVICE, path, async ({ authority }) => {
    const { log } = (await (await fetch(`http://${authority}/`)).json()) as {
      readonly log: { readonly prefix: string };
    };
    const levels = [ENTRIES, ...Array.from({ length: levelsOf(size) }, (_, level) => level)] as const;
    const tiles = levels.flatMap((level) => [...tilesBetween(level, 0, size)]);
    const paths = tiles.map((tile) => `${log.prefix}/${tilePath(tile)}`);
    const { samples } = await drive({ kind: 'probe', authority, paths, forMillis: 1, pauseMillis: 0 });
    return latenciesOf(samples.map(([first]) => first?.millis ?? Number.NaN));
  });
}
