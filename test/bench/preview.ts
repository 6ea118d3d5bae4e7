// merkle-preview and the chamber view, whose cost must not depend on the length of the chamber's log.
import { median } from './figures.ts';
import { LONG_CHAMBER, SHORT_CHAMBER, twoChambers } from './logs/shapes.ts';
import { storedLog } from './logs/stored-log.ts';
import { type Options, scaled } from './options.ts';
import { drive, withServerOn } from './processes.ts';
import type { Report } from './report.ts';
import { measureInRounds } from './rounds.ts';
import { SERVICE } from './sides.ts';
import { compare, type Row } from './verdicts.ts';

const FOR_MILLIS = 4_000;
const READS = [
  { name: 'merkle-preview', path: '/merkle-preview' },
  { name: 'chamber view', path: '' },
];

export async function benchPreview(options: Options): Promise<Report> {
  const spec = twoChambers(options);
  const path = await storedLog(spec);
  const chambers = [SHORT_CHAMBER, LONG_CHAMBER];
  const paths = READS.flatMap((read) => chambers.map((chamberId) => `/chambers/${chamberId}${read.path}`));
  const forMillis = scaled(FOR_MILLIS, options);
  const measure = () => withServerOn(SERVICE, path, ({ authority }) => measureWarm(authority, paths, forMillis));
  const [series] = await measureInRounds([{ name: SERVICE.name, measure }], options.runs);
  const rows = READS.flatMap(({ name }, read) =>
    chambers.map(
      (chamberId, index): Row => ({
        what: `${name}, ${spec.chambers[chamberId - 1]} events`,
        unit: 'µs median answer',
        values: series?.runs.map((medians) => 1000 * (medians[2 * read + index] ?? Number.NaN)) ?? [],
      }),
    ),
  );
  return {
    bench: 'preview (one connection, the four paths in turn, warm)',
    rows,
    verdicts: READS.map(({ name }, read) =>
      compare({
        what: `${name}: long / short`,
        of: rows[2 * read + 1] as Row,
        to: rows[2 * read] as Row,
        target: { is: 'at most', value: 1.3 },
      }),
    ),
  };
}

/** Returns the median of each path, in milliseconds. Both chambers are folded and the code is compiled before the clock starts. */
async function measureWarm(authority: string, paths: readonly string[], forMillis: number): Promise<readonly number[]> {
  await drive({ kind: 'probe', authority, paths, forMillis: forMillis / 4, pauseMillis: 0 });
  const { samples } = await drive({ kind: 'probe', authority, paths, forMillis, pauseMillis: 0 });
  return samples.map((each) => median(each.map(({ millis }) => millis)));
}
