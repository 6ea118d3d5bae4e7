// Reads the file that CONTRACTS_FILE names: the parameters of `quorum` deployments that do not come from the chamber.
import { readFileSync } from 'node:fs';
import * as v from 'valibot';
import type { Address } from 'viem';
import { exactly, hexString, integer, walletAddress } from '../vocabulary/schemas.ts';
import { BPS_TOTAL } from '../vocabulary/values.ts';

const INT24_MAX = 2 ** 23 - 1;

// viem rejects addresses in upper case.
const address = v.pipe(
  walletAddress,
  v.transform((text) => text.toLowerCase() as Address),
);
const int24 = integer(-INT24_MAX - 1, INT24_MAX);
const bps = integer(0, BPS_TOTAL);
const bytes = hexString(/^0x([0-9a-fA-F]{2})*$/, 'must be 0x and an even number of hex digits');
const text = v.pipe(
  v.string('must be a string'),
  v.check((value) => value.isWellFormed(), 'must be well-formed Unicode'),
);
const listOf = <Item extends v.GenericSchema>(item: Item) => v.array(item, 'must be an array');
const wei = v.pipe(
  v.string('must be wei as a string of digits'),
  v.regex(/^\d{1,30}$/, 'must be wei as a string of digits'),
  v.transform((digits) => BigInt(digits)),
);

const settings = v.pipe(
  exactly({
    image: text,
    metadata: text,
    context: text,
    salt: v.exactOptional(hexString(/^0x[0-9a-fA-F]{64}$/, 'must be 0x and 64 hex digits')),
    protocolTreasury: address,
    winnersSplitter: address,
    forPool: address,
    againstPool: address,
    executorPool: address,
    bps: v.strictTuple([bps, bps, bps, bps, bps, bps], 'must be an array of 6 integers'),
    pairedToken: address,
    tickIfToken0IsClanker: int24,
    tickSpacing: int24,
    poolData: bytes,
    tickLower: listOf(int24),
    tickUpper: listOf(int24),
    positionBps: listOf(bps),
    lockerData: bytes,
    mevModuleData: bytes,
    value: v.optional(wei, '0'),
  }),
  v.check(
    ({ tickLower, tickUpper, positionBps }) =>
      tickLower.length === tickUpper.length && tickLower.length === positionBps.length,
    'tickLower, tickUpper and positionBps must be equally long',
  ),
);

/** `salt` overrides the salt derived from the ids of chamber and idea; `value` is in wei. */
export type QuorumSettings = Readonly<v.InferOutput<typeof settings>>;

/** Throws an Error with a one-line message that names the file and every invalid member. */
export function readQuorumSettings(path: string): QuorumSettings {
  const { success, output, issues } = v.safeParse(settings, readJson(path), { abortPipeEarly: true });
  if (success) return output;
  throw new Error(`${path}: ${issues.map(describe).join('; ')}`);
}

function describe(issue: v.BaseIssue<unknown>): string {
  const member = v.getDotPath(issue);
  if (member === null) return issue.message;
  return issue.input === undefined ? `${member} is missing` : `${member} ${issue.message}`;
}

function readJson(path: string): unknown {
  try {
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    if (error instanceof SyntaxError) throw new Error(`${path} is not JSON`);
    const { code } = error as NodeJS.ErrnoException;
    throw new Error(`${path} ${code === 'ENOENT' ? 'not found' : `can’t be read: ${code}`}`);
  }
}
