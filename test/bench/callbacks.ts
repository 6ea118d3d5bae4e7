// The cost of callbacks: moves per second in 1,000 chambers whose 10,000 agents all have callbacks, compared with the same
// service with CALLBACKS=off, and the memory of both.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import type { MovesResult } from './load/moves.ts';
import { type Options, scaled } from './options.ts';
import { drive, residentBytes, start, withFolder, withServerOn } from './processes.ts';
import type { Report } from './report.ts';
import { failuresOf, measureInRounds, rowOf } from './rounds.ts';
import { SERVICE, type Side } from './sides.ts';
import { compare } from './verdicts.ts';

const CHAMBERS = 1_000;
const AGENTS = 10;
const MOVES_PER_CHAMBER = 30;
const LOBBY_MILLIS = 45_000;
const SHARE_MIN = 0.9;

const MEBIBYTE = 1_048_576;

interface Figures extends MovesResult {
  readonly deliveries: number;
  readonly mebibytes: number;
}

export async function benchCallbacks(options: Options): Promise<Report> {
  const side = (name: string, CALLBACKS: string): Side => ({ ...SERVICE, name, env: { ...SERVICE.env, CALLBACKS } });
  const sides = [side('callbacks off', 'off'), side('10,000 callbacks', 'on')];
  const contenders = sides.map((each) => ({ name: each.name, measure: () => measure(each, options) }));
  const series = await measureInRounds(contenders, options.runs);
  const rows = series.map((each) => rowOf(each, 'moves/s', ({ perSecond }) => perSecond));
  const [off, on] = rows;
  if (off === undefined || on === undefined) throw new Error('a side is missing');
  return {
    bench: `callbacks (${scaled(CHAMBERS, options)} chambers of ${AGENTS} agents)`,
    rows: [
      ...rows,
      ...series.map((each) => rowOf(each, 'MiB resident', ({ mebibytes }) => mebibytes)),
      ...series.map((each) => rowOf(each, 'deliveries', ({ deliveries }) => deliveries)),
    ],
    verdicts: [
      compare({
        what: 'with callbacks / without',
        of: on,
        to: off,
        target: { is: 'at least', value: SHARE_MIN },
        objections: failuresOf(series),
      }),
    ],
  };
}

function measure(side: Side, options: Options): Promise<Figures> {
  return withFolder(async (folder) => {
    let deliveries = 0;
    const receiver = createServer((request, response) => {
      deliveries++;
      request.resume().on('end', () => response.writeHead(204).end());
    }).listen(0, '127.0.0.1');
    const path = join(folder, 'bench.db');
    try {
      await (await start(side, { databasePath: path })).stop();
      callEveryMember(path, () => `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`);
      return await withServerOn(side, path, async ({ authority, pid }) => {
        const result = await drive({
          ...{ kind: 'moves', authority, rounds: 1, lobbyMillis: LOBBY_MILLIS },
          connections: scaled(CHAMBERS, options),
          agentsPerChamber: AGENTS,
          movesPerConnection: MOVES_PER_CHAMBER,
        });
        return { ...result, deliveries, mebibytes: residentBytes(pid) / MEBIBYTE };
      });
    } finally {
      receiver.close().closeAllConnections();
    }
  });
}

/** Sets a callback for each agent as soon as it joins a chamber; setting them over HTTP would measure challenges. */
function callEveryMember(path: string, url: () => string): void {
  const db = new Database(path);
  db.exec(`CREATE TRIGGER callbacks_of_members AFTER INSERT ON members BEGIN
    INSERT OR IGNORE INTO callbacks VALUES (NEW.did, '${url()}', 1, NULL, 0, NULL, NULL, NULL); END`);
  db.close();
}
