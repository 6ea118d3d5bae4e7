// A start on a long log against a start on an empty one, and the first access to a chamber that is not in memory.
import { median } from './figures.ts';
import { COLD_CHAMBER, EMPTY, manyChambers } from './logs/shapes.ts';
import { storedLog } from './logs/stored-log.ts';
import type { Options } from './options.ts';
import { drive, residentBytes, withServerOn } from './processes.ts';
import type { Report } from './report.ts';
import { about, measureInRounds, rowOf } from './rounds.ts';
import { SERVICE } from './sides.ts';
import { bound, compare, exceed } from './verdicts.ts';

const STARTS = 5;
const MEBIBYTE = 1_048_576;

interface Figures {
  /** The time from the start of the process until it reports that it listens. */
  readonly millis: number;
  readonly mebibytes: number;
  /** NaN if the chamber was not found. */
  readonly firstTouchMillis: number;
}

export async function benchStart(options: Options): Promise<Report> {
  const spec = manyChambers(options);
  const [long, empty] = [await storedLog(spec), await storedLog(EMPTY)];
  const events = spec.chambers.reduce((sum, size) => sum + size, 0);
  const series = await measureInRounds(
    [
      { name: `${events} events in ${spec.chambers.length} chambers`, measure: () => measure(long, [COLD_CHAMBER]) },
      { name: 'empty log', measure: () => measure(empty, []) },
    ],
    options.runs,
  );
  const [time, emptyTime] = series.map((each) => rowOf(about('start', each), 'ms', ({ millis }) => millis));
  const [memory, emptyMemory] = series.map((each) =>
    rowOf(about('resident', each), 'MiB', ({ mebibytes }) => mebibytes),
  );
  const [touch] = series.map((each) =>
    rowOf(
      about(`first touch of a chamber of ${spec.chambers[COLD_CHAMBER - 1]}`, each),
      'ms',
      ({ firstTouchMillis }) => firstTouchMillis,
    ),
  );
  if (!time || !emptyTime || !memory || !emptyMemory || !touch) throw new Error('starts on two logs must be measured');
  return {
    bench: `start (medians of ${STARTS} starts)`,
    rows: [time, emptyTime, memory, emptyMemory, touch],
    verdicts: [
      compare({ what: 'start: long / empty', of: time, to: emptyTime, target: { is: 'at most', value: 1.5 } }),
      exceed({ what: 'resident: long - empty', of: memory, to: emptyMemory, target: { is: 'at most', value: 60 } }),
      bound({ what: 'first touch of a cold chamber', of: touch, target: { is: 'at most', value: 150 } }),
    ],
  };
}

async function measure(path: string, cold: readonly number[]): Promise<Figures> {
  const starts: Figures[] = [];
  for (let count = 0; count < STARTS; count++) starts.push(await startOnce(path, cold));
  return {
    millis: median(starts.map(({ millis }) => millis)),
    mebibytes: median(starts.map(({ mebibytes }) => mebibytes)),
    firstTouchMillis: median(starts.map(({ firstTouchMillis }) => firstTouchMillis)),
  };
}

function startOnce(path: string, cold: readonly number[]): Promise<Figures> {
  return withServerOn(SERVICE, path, async ({ authority, pid, startMillis }) => {
    const mebibytes = residentBytes(pid) / MEBIBYTE;
    const paths = ['/', ...cold.map((chamberId) => `/chambers/${chamberId}`)];
    // A different request comes first, so that the first access is not the first request of the process.
    const { samples } = await drive({ kind: 'probe', authority, paths, forMillis: 1, pauseMillis: 1 });
    return { millis: startMillis, mebibytes, firstTouchMillis: samples[1]?.[0]?.millis ?? Number.NaN };
  });
}
