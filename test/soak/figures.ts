// The resources of the service's process, and their allowed growth in the second half of a run.

/** Figures measured once the process is idle and garbage has been collected. */
export interface Figures {
  /** V8's heap, and the external memory of its objects. */
  readonly heapBytes: number;
  /** Only reported, because allocators keep freed memory. */
  readonly residentBytes: number;
  /** Handles that keep the event loop alive, except timers and sockets. */
  readonly handles: number;
  readonly sockets: number;
  /** The listeners of sockets and of the process. */
  readonly listeners: number;
  /** The followers of streams of the log. */
  readonly followers: number;
  readonly timers: number;
  readonly promises: number;
  /** Open file descriptors. */
  readonly files: number;
}

/** The work done. */
export interface Work {
  readonly chambers: number;
  /** The waits at /me/todo. */
  readonly waits: number;
  readonly streams: number;
  readonly pageLoads: number;
}

/** Returns the row of a quarter: medians of its rounds' figures, and sums of their work. */
export interface Row extends Figures, Work {
  readonly seconds: number;
  readonly rpcCalls: number;
  readonly logLines: number;
}

const JUDGED = {
  heapBytes: 'heap',
  handles: 'handles',
  sockets: 'sockets',
  listeners: 'listeners',
  followers: 'followers',
  timers: 'timers',
  promises: 'promises',
  files: 'files',
  logLines: 'log lines',
} as const satisfies Partial<Record<keyof Row, string>>;

const GROWTH_MAX = 0.05;
/** The number of log lines about a chain fault depends on its timing. */
const LINES_SPARE = 6;

/** Returns the figures that grew from the second quarter to the last. */
export function growthProblems(rows: readonly Row[]): readonly string[] {
  const [, second, , last] = rows;
  if (second === undefined || last === undefined) return ['the run did not reach its last quarter'];
  return Object.entries(JUDGED).flatMap(([key, name]) => {
    const [before, after] = [second[key as keyof typeof JUDGED], last[key as keyof typeof JUDGED]];
    const spare = key === 'logLines' ? LINES_SPARE : 0;
    return after <= before * (1 + GROWTH_MAX) + spare ? [] : [`${name} grew from ${before} to ${after}`];
  });
}

export function rowOf(rounds: readonly Row[]): Row {
  // The lower of the two middle values is used, because the other may include resources that are released within seconds.
  const middle = (key: keyof Row) =>
    rounds.map((round) => round[key]).toSorted((a, b) => a - b)[(rounds.length - 1) >> 1] ?? 0;
  const sum = (key: keyof Row) => rounds.reduce((total, round) => total + round[key], 0);
  return {
    ...{ seconds: sum('seconds'), chambers: sum('chambers'), rpcCalls: sum('rpcCalls'), waits: sum('waits') },
    ...{ streams: sum('streams'), pageLoads: sum('pageLoads'), logLines: sum('logLines') },
    ...{ heapBytes: middle('heapBytes'), residentBytes: middle('residentBytes'), handles: middle('handles') },
    ...{ sockets: middle('sockets'), listeners: middle('listeners'), timers: middle('timers') },
    ...{ followers: middle('followers'), promises: middle('promises'), files: middle('files') },
  };
}

const COLUMNS: readonly (readonly [head: string, cell: (row: Row) => string])[] = [
  ['s', ({ seconds }) => seconds.toFixed(0)],
  ['chambers', ({ chambers }) => `${chambers}`],
  ['RPC calls', ({ rpcCalls }) => `${rpcCalls}`],
  ['waits', ({ waits }) => `${waits}`],
  ['streams', ({ streams }) => `${streams}`],
  ['pages', ({ pageLoads }) => `${pageLoads}`],
  ['heap MB', ({ heapBytes }) => (heapBytes / 1e6).toFixed(2)],
  ['RSS MB', ({ residentBytes }) => (residentBytes / 1e6).toFixed(0)],
  ['handles', ({ handles }) => `${handles}`],
  ['sockets', ({ sockets }) => `${sockets}`],
  ['listeners', ({ listeners }) => `${listeners}`],
  ['followers', ({ followers }) => `${followers}`],
  ['timers', ({ timers }) => `${timers}`],
  ['promises', ({ promises }) => `${promises}`],
  ['files', ({ files }) => `${files}`],
  ['log lines', ({ logLines }) => `${logLines}`],
];

export const TABLE_HEAD: string = ['quarter', ...COLUMNS.map(([head]) => head)].join('  ');

/** Returns the cells, aligned with TABLE_HEAD. */
export function tableLine(quarter: string, row: Row): string {
  return [quarter.padStart('quarter'.length), ...COLUMNS.map(([head, cell]) => cell(row).padStart(head.length))].join(
    '  ',
  );
}
