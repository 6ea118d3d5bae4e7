// `npm run bench`: all benches, or the named ones: `npm run bench -- moves single`.
// Options: --runs 3, --only <pattern of sides>, --scale 1 (share of the full sizes, to try out a bench), --against <checkout> (for versus).
import { mkdirSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { benchAudit } from './audit.ts';
import { benchCallbacks } from './callbacks.ts';
import { benchFanout } from './fanout.ts';
import { BENCH_FOLDER, stamp } from './folder.ts';
import { benchIdle } from './idle.ts';
import { benchMoves } from './moves.ts';
import { benchNodes } from './nodes.ts';
import type { Options } from './options.ts';
import { benchPace } from './pace.ts';
import { benchPreview } from './preview.ts';
import { benchProfile } from './profile.ts';
import { benchReceipts } from './receipts.ts';
import { benchReplay } from './replay.ts';
import { printReport, type Report } from './report.ts';
import { benchSingle } from './single.ts';
import { benchSlowChain } from './slow-chain.ts';
import { benchSlowDisk } from './slow-disk.ts';
import { benchStart } from './start.ts';
import { benchTiles } from './tiles.ts';
import { benchTokens } from './tokens.ts';
import { benchVersus } from './versus.ts';
import { benchWithheld } from './withheld.ts';

const BENCHES: Readonly<Record<string, (options: Options) => Promise<Report>>> = {
  moves: ({ runs, only }) => benchMoves(runs, only),
  single: benchSingle,
  profile: benchProfile,
  fanout: benchFanout,
  replay: benchReplay,
  preview: benchPreview,
  start: benchStart,
  idle: benchIdle,
  audit: benchAudit,
  callbacks: benchCallbacks,
  nodes: benchNodes,
  receipts: benchReceipts,
  tiles: benchTiles,
  pace: benchPace,
  'slow-chain': benchSlowChain,
  'slow-disk': benchSlowDisk,
  tokens: benchTokens,
  versus: benchVersus,
  withheld: benchWithheld,
};

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    runs: { type: 'string', default: '3' },
    only: { type: 'string', default: '' },
    scale: { type: 'string', default: '1' },
    against: { type: 'string' },
  },
});
const options: Options = {
  runs: Number(values.runs),
  only: new RegExp(values.only),
  scale: Number(values.scale),
  against: values.against && resolve(values.against),
};
const names = positionals.length > 0 ? positionals : Object.keys(BENCHES).filter((name) => name !== 'versus');

const reports: Report[] = [];
for (const name of names) {
  const bench = BENCHES[name];
  if (bench === undefined) throw new Error(`unknown bench ${name}; known: ${Object.keys(BENCHES).join(', ')}`);
  process.stderr.write(`${name}\n`);
  const report = await bench(options).catch((error: unknown) => {
    process.exitCode = 1;
    process.stdout.write(`\n${name}: no figures, because ${error instanceof Error ? error.message : error}\n`);
  });
  if (!report) continue;
  printReport(report);
  reports.push(report);
}
if (options.scale !== 1) process.stdout.write(`\nsizes were scaled by ${options.scale}: do not use these figures\n`);
process.stdout.write(`\n${writeFigures(reports)}\n`);

function writeFigures(all: readonly Report[]): string {
  mkdirSync(BENCH_FOLDER, { recursive: true });
  const path = `${BENCH_FOLDER}/${stamp()}.json`;
  const machine = {
    node: process.version,
    platform: process.platform,
    cores: cpus().length,
    cpu: cpus()[0]?.model ?? '',
  };
  const figures = { at: new Date().toISOString(), machine, options: values, reports: all };
  writeFileSync(path, `${JSON.stringify(figures, null, 2)}\n`);
  return path;
}
