// Encodes the state of a chamber or account as text, so that it need not be folded from the first event. The log remains the source of
// truth: a snapshot can be dropped.
import { canonicalJson } from '../src/vocabulary/json.ts';
import type { Hex } from '../src/vocabulary/values.ts';
import type { AccountState } from './account.ts';
import type { ChamberState, Reveal } from './chamber.ts';
import type { Deployment } from './settlement.ts';

/** Must be raised whenever ChamberState or AccountState changes: snapshots of other versions are dropped. */
export const STATE_VERSION = 7;

export const SNAPSHOT_EVERY_EVENTS = 1_000;
/** A change of an account replaces most of its state, and its line is several times larger than the state. */
export const ACCOUNT_SNAPSHOT_EVERY_EVENTS = 16;
/** A state with n times this much text gets a snapshot n times less often, so that the cost per event does not grow. */
const TEXT_PER_INTERVAL = 1_048_576;

/** The approximate number of characters that a stance adds to the encoded state. */
const STANCE_CHARS = 32;

/** Whether a snapshot is due after the state's last event. */
export function isSnapshotDue(state: ChamberState | AccountState): boolean {
  if (!isChamber(state)) return state.lastEventId % ACCOUNT_SNAPSHOT_EVERY_EVENTS === 0;
  if (state.lastEventId % SNAPSHOT_EVERY_EVENTS !== 0) return false;
  const intervals = Math.max(1, Math.ceil(textLength(state) / TEXT_PER_INTERVAL));
  return (state.lastEventId / SNAPSHOT_EVERY_EVENTS) % intervals === 0;
}

/** Returns the length of the texts that make a state large. */
function textLength({ ideas, settlement }: ChamberState): number {
  let length = 0;
  for (const { description, stances } of ideas) length += description.length + STANCE_CHARS * stances.length;
  for (const { submitted } of settlement.deployments.values()) {
    for (const { rawTransaction = '' } of submitted) length += rawTransaction.length;
  }
  return length;
}

/** Returns canonical JSON, so that equal states have equal texts. */
export function encodeState(state: ChamberState | AccountState): string {
  if (!isChamber(state)) return canonicalJson(state);
  const { commitments, reveals, settlement, ...rest } = state;
  const maps = { commitments: [...commitments], reveals: [...reveals], deployments: [...settlement.deployments] };
  return canonicalJson({ ...rest, ...maps, settlement: { ...settlement, deployments: null } });
}

interface EncodedState extends Omit<ChamberState, 'commitments' | 'reveals' | 'settlement'> {
  readonly commitments: readonly (readonly [string, Hex])[];
  readonly reveals: readonly (readonly [string, Reveal])[];
  readonly deployments: readonly (readonly [string, Deployment])[];
  readonly settlement: Omit<ChamberState['settlement'], 'deployments'>;
}

function isChamber(state: ChamberState | AccountState): state is ChamberState {
  return 'chamberId' in state;
}

/** Decodes the text of an account's state, made by encodeState with the same STATE_VERSION. */
export function decodeAccount(text: string): AccountState {
  return JSON.parse(text) as AccountState;
}

/** Decodes the text of a chamber's state, made by encodeState with the same STATE_VERSION. */
export function decodeState(text: string): ChamberState {
  const { commitments, reveals, deployments, settlement, ...rest } = JSON.parse(text) as EncodedState;
  return {
    ...rest,
    commitments: new Map(commitments),
    reveals: new Map(reveals),
    settlement: { ...settlement, deployments: new Map(deployments) },
  };
}
