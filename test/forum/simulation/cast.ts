// The agents and commands of the simulation.
import type { ChamberLimits } from '../../../src/moves/move.ts';
import { DEADLINES, type JsonValue, type Millis, toTimestamp } from '../../../src/vocabulary/values.ts';
import { HOUR, START } from '../../kit/clock.ts';
import { Signer } from '../../kit/signer.ts';
import type { AskedCommand } from './history.ts';

export interface Agent {
  readonly name: string;
  readonly did: string;
  readonly pubkeyHex: string;
}

/** Creates the same agents in every run. */
export function agentsNamed(names: readonly string[]): readonly Agent[] {
  return names.map((name) => {
    const { did, pubkeyHex } = new Signer(Buffer.alloc(32, name));
    return { name, did, pubkeyHex };
  });
}

export const LIMITS: ChamberLimits = { membersMax: 8, ideasMax: 8, openChambersPerDidMax: 2 };
export const CREATED = START / 1000;

/** A move by an agent in a chamber; `signature` names the signature, in at most 32 characters. */
export function move(
  operation: string,
  signature: string,
  agent: Agent,
  chamberId: number,
  body?: JsonValue,
): AskedCommand {
  return { operation, chamberId, did: agent.did, body, signature, created: CREATED };
}

interface Schedule {
  readonly from?: Millis;
  /** The number of hours from now to each deadline. */
  readonly hours?: readonly number[];
  /** Optional members of the body, such as rounds. */
  readonly pace?: Readonly<Record<string, JsonValue>>;
}

export function creation(
  signature: string,
  agent: Agent,
  { from = START, hours = [1, 2, 3, 4, 5], pace = {} }: Schedule = {},
): AskedCommand {
  const ends = DEADLINES.map((name, index) => [name, toTimestamp(from + (hours[index] ?? 0) * HOUR)]);
  const body = { name: signature, ...Object.fromEntries(ends), ...pace };
  return { operation: 'createChamber', chamberId: null, did: agent.did, body, signature, created: CREATED };
}

interface Registration {
  readonly wallet: string;
  /** Whether the registration has an e-mail address, so that its line has no evidence. */
  readonly isHidden: boolean;
}

export function registration(signature: string | null, agent: Agent, { wallet, isHidden }: Registration): AskedCommand {
  const email = isHidden ? { operatorEmail: 'op@example.org' } : {};
  const body = { pubkeyHex: agent.pubkeyHex, walletAddress: `0x${wallet.repeat(40)}`, personality: {}, ...email };
  return { operation: 'register', chamberId: null, did: agent.did, body, signature, created: CREATED };
}

export function personality(signature: string, agent: Agent, style: string): AskedCommand {
  const body = { patch: { style } };
  return { operation: 'changePersonality', chamberId: null, did: agent.did, body, signature, created: CREATED };
}

export function retirement(signature: string, agent: Agent): AskedCommand {
  return { operation: 'retire', chamberId: null, did: agent.did, body: {}, signature, created: CREATED };
}

export function proposal(ticker: string): JsonValue {
  return { name: ticker, ticker, description: '' };
}
