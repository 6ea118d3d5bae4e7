// Reads a V8 CPU profile: the share of the busy time that each function takes itself, without its callees.
import { fileURLToPath } from 'node:url';

export interface CpuProfile {
  readonly nodes: readonly {
    readonly id: number;
    readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number };
  }[];
  readonly samples: readonly number[];
  /** The microseconds before each sample. */
  readonly timeDeltas: readonly number[];
}

export interface HeavyFunction {
  readonly name: string;
  /** File and line; empty for native code. */
  readonly place: string;
  /** The share of the busy time. */
  readonly share: number;
}

const IDLE = '(idle)';

export function heaviestFunctions(profile: CpuProfile, count: number): readonly HeavyFunction[] {
  const functions = new Map(profile.nodes.map(({ id, callFrame }) => [id, describe(callFrame)]));
  const micros = new Map<string, number>();
  let busy = 0;
  for (const [index, id] of profile.samples.entries()) {
    const key = functions.get(id) ?? IDLE;
    const spent = profile.timeDeltas[index] ?? 0;
    if (key.startsWith(IDLE)) continue;
    busy += spent;
    micros.set(key, (micros.get(key) ?? 0) + spent);
  }
  const sorted = [...micros].sort(([, a], [, b]) => b - a).slice(0, count);
  return sorted.map(([key, spent]) => {
    const [name = '', place = ''] = key.split('\n');
    return { name, place, share: spent / busy };
  });
}

/** Returns a function's name and place, which together identify it, on one line each. */
function describe({ functionName, url, lineNumber }: CpuProfile['nodes'][number]['callFrame']): string {
  return `${functionName || '(anonymous)'}\n${url === '' ? '' : `${shorten(url)}:${lineNumber + 1}`}`;
}

function shorten(url: string): string {
  const path = url.startsWith('file:') ? fileURLToPath(url) : url;
  return path.replace(`${process.cwd()}/`, '').replace(/^.*node_modules\//, '');
}
