// `npm run bench`: all benches, or those named: `npm run bench -- moves single`. Options: --runs 3, --only <pattern of sides>.
import { mkdirSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { parseArgs } from 'node:util';
import { benchMoves } from './moves.ts';
import { printReport, type Report } from './report.ts';

interface Options {
  readonly runs: number;
  readonly only: RegExp;
}

const BENCHES: Readonly<Record<string, (options: Options) => Promise<Report>>> = {
  moves: ({ runs, only }) => benchMoves(runs, only),
};

const FOLDER = 'data/bench';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { runs: { type: 'string', default: '3' }, only: { type: 'string', default: '' } },
});
const options: Options = { runs: Number(values.runs), only: new RegExp(values.only) };
const names = positionals.length > 0 ? positionals : Object.keys(BENCHES);

const reports: Report[] = [];
for (const name of names) {
  const bench = BENCHES[name];
  if (bench === undefined) throw new Error(`no bench ${name}; there are ${Object.keys(BENCHES).join(', ')}`);
  process.stderr.write(`${name}\n`);
  const report = await bench(options);
  printReport(report);
  reports.push(report);
}
process.stdout.write(`\n${writeFigures(reports)}\n`);

function writeFigures(all: readonly Report[]): string {
  mkdirSync(FOLDER, { recursive: true });
  const at = new Date().toISOString();
  const path = `${FOLDER}/${at.replace(/[:.]/g, '-')}.json`;
  const machine = {
    node: process.version,
    platform: process.platform,
    cores: cpus().length,
    cpu: cpus()[0]?.model ?? '',
  };
  writeFileSync(path, `${JSON.stringify({ at, machine, reports: all }, null, 2)}\n`);
  return path;
}
