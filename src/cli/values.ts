// Values as they are written on a command line.
import { type Allocation, DEADLINES, type Deadlines, isPhase, type Phase } from '../vocabulary/values.ts';
import { UsageError } from './failure.ts';

/** An integer of at least `least`. */
export function toInteger(name: string, text: string, least = 0): number {
  const value = Number(text);
  if (/^\d+$/.test(text) && Number.isSafeInteger(value) && value >= least) return value;
  throw new UsageError(`${name} must be an integer of at least ${least}, not “${text}”`);
}

export function toChamberId(text: string | undefined): number {
  return toInteger('ID', text ?? '', 1);
}

export function toPhase(text: string): Phase {
  const phase = text.toUpperCase();
  if (isPhase(phase)) return phase;
  throw new UsageError(`“${text}” is no phase: LOBBY, PROPOSAL, DEBATE, ALLOCATE_COMMIT, ALLOCATE_REVEAL or COMMITTED`);
}

const UNIT_MILLIS = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** The five deadlines from the five lengths of the phases, each like 90s, 10m, 2h or 3d, the first from now on. */
export function toDeadlines(lengths: readonly string[], now: number): Deadlines {
  let at = now;
  const deadlines = DEADLINES.map((name, phase) => {
    at += toMillis(lengths[phase] ?? '');
    return [name, new Date(at).toISOString()] as const;
  });
  return Object.fromEntries(deadlines) as Deadlines;
}

function toMillis(length: string): number {
  const [, count, unit] = /^(\d{1,6})([smhd])$/.exec(length) ?? [];
  if (count !== undefined && unit !== undefined) return Number(count) * UNIT_MILLIS[unit as keyof typeof UNIT_MILLIS];
  throw new UsageError(`“${length}” is no length of a phase: write 90s, 10m, 2h or 3d`);
}

/** An allocation like idea-1=6000. */
export function toAllocation(text: string): Allocation {
  const [, ideaId, bps] = /^([^=]+)=(\d+)$/.exec(text) ?? [];
  if (ideaId !== undefined && bps !== undefined) return { ideaId, bps: Number(bps) };
  throw new UsageError(`“${text}” is no allocation: write IDEA=BPS, e.g. idea-1=6000`);
}

/** Parts between commas, without the white space around them. */
export function toList(text: string): readonly string[] {
  return text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '');
}
