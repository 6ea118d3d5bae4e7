// Parses command-line values. Each function throws a CommandError if the text is invalid.
import {
  type Allocation,
  DEADLINES,
  type Deadlines,
  isPhase,
  type Millis,
  PHASES,
  type Phase,
  type Rounds,
} from '../vocabulary/values.ts';
import { CommandError } from './output.ts';

export function toInteger(name: string, text: string, least = 1): number {
  const value = Number(text);
  if (/^\d+$/.test(text) && Number.isSafeInteger(value) && value >= least) return value;
  throw new CommandError('usage', `${name} must be an integer of at least ${least}, not “${text}”`);
}

export function toOptionalInteger(name: string, text: string | undefined, least = 1): number | undefined {
  return text === undefined ? undefined : toInteger(name, text, least);
}

/** Parses e.g. 2,3: each member's turns in PROPOSAL and in DEBATE. */
export function toRounds(text: string | undefined): Rounds | undefined {
  if (text === undefined) return undefined;
  const [, proposal, debate] = /^(\d{1,3}),(\d{1,3})$/.exec(text) ?? [];
  if (debate !== undefined) return { proposal: Number(proposal), debate: Number(debate) };
  throw new CommandError('usage', `--rounds must be two numbers, e.g. 2,3, not “${text}”`);
}

export function toChamberId(text = ''): number {
  return toInteger('the chamber id', text);
}

export function toPhase(text: string): Phase {
  const phase = text.toUpperCase();
  // `commit` and `reveal`, as in the options of `chamber create`, are accepted too.
  const found = [phase, `ALLOCATE_${phase}`].find(isPhase);
  if (found !== undefined) return found;
  throw new CommandError('usage', `“${text}” is not a phase: use one of ${PHASES.join(', ')}`);
}

const UNIT_MILLIS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

export function toMillis(length: string): Millis {
  const [, count, unit = ''] = /^(\d{1,6})([smhd])$/.exec(length) ?? [];
  const millis = Number(count) * (UNIT_MILLIS[unit] ?? Number.NaN);
  if (Number.isNaN(millis)) throw new CommandError('usage', `“${length}” is not a duration: use 90s, 10m, 2h or 3d`);
  return millis;
}

/** `lengths` are like 90s, 10m, 2h or 3d; the first phase starts now. */
export function toDeadlines(lengths: readonly string[], now: number): Deadlines {
  let at = now;
  const deadlines = DEADLINES.map((name, phase) => {
    at += toMillis(lengths[phase] ?? '');
    return [name, new Date(at).toISOString()] as const;
  });
  return Object.fromEntries(deadlines) as Deadlines;
}

export function toAllocation(text: string): Allocation {
  const [, ideaId, bps] = /^([^=]+)=(\d+)$/.exec(text) ?? [];
  if (ideaId !== undefined && bps !== undefined) return { ideaId, bps: Number(bps) };
  throw new CommandError('usage', `“${text}” is not an allocation: use IDEA=BPS, e.g. idea-1=6000`);
}

export function toJsonObject(name: string, text: string): object {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value;
  } catch {
    // Reported below.
  }
  throw new CommandError('usage', `${name} must be a JSON object, e.g. '{"scale":2}', not “${text}”`);
}
