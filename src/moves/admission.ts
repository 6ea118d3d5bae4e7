// The rules for who may join a chamber: their form in the creation of a chamber, and the checks of a join.
import * as v from 'valibot';
import { needsProvenWallet, seatOfWallet, unmetRules } from '../../projections/admission.ts';
import { parseDid, weaknessOf } from '../crypto/did-key.ts';
import { conflict, ForumError } from '../vocabulary/errors.ts';
import type { MovePayloads } from '../vocabulary/events.ts';
import { address, count, DID, did, exactly, hash, id, walletAddress } from '../vocabulary/schemas.ts';
import type { Admission, AdmissionRule, BlockReference } from '../vocabulary/values.ts';
import { remedies, tokenRemedy } from './admission-texts.ts';
import type { ReadChain } from './chain-question.ts';
import type { DecisionContext } from './move.ts';

const LISTED_AT_CREATION_MAX = 256;
const BALANCE_MAX = 2n ** 256n - 1n;

const DID_MESSAGE = 'must be a did:key of an Ed25519 key';
export const sentDid = v.pipe(
  v.string(DID_MESSAGE),
  v.regex(DID, DID_MESSAGE),
  v.check(isAcceptedKey, DID_MESSAGE),
  v.description('did:key of an Ed25519 public key'),
);

/** Whether the key is accepted; an agent with a rejected key could never join. */
function isAcceptedKey(did: string): boolean {
  const publicKey = parseDid(did);
  return publicKey !== undefined && weaknessOf(publicKey) === undefined;
}

const BALANCE_MESSAGE = 'must be an integer from 1 to 2^256 - 1, as a number or as a string of decimal digits';
const sentBalance = v.pipe(
  v.union(
    [v.number(BALANCE_MESSAGE), v.pipe(v.string(BALANCE_MESSAGE), v.regex(/^[1-9]\d{0,77}$/, BALANCE_MESSAGE))],
    BALANCE_MESSAGE,
  ),
  v.check(isBalance, BALANCE_MESSAGE),
  v.transform(String),
);

function isBalance(sent: number | string): boolean {
  const isExact = typeof sent === 'string' || (Number.isSafeInteger(sent) && sent > 0);
  return isExact && BigInt(sent) <= BALANCE_MAX;
}

export const sentAdmission = v.pipe(
  exactly({
    dids: v.exactOptional(
      v.pipe(
        v.array(sentDid, 'must be an array of did:keys'),
        v.maxLength(LISTED_AT_CREATION_MAX, `must contain at most ${LISTED_AT_CREATION_MAX} did:keys`),
        v.checkItems((item, index, items) => items.indexOf(item) === index, 'is listed twice'),
        v.description('only these agents may join; the creator adds more in LOBBY'),
      ),
    ),
    provenWallets: v.exactOptional(
      v.pipe(
        v.literal(true, 'must be true or omitted'),
        v.description('only agents with a proven wallet may join, one per wallet'),
      ),
    ),
    token: v.exactOptional(
      v.pipe(
        exactly({
          address: walletAddress,
          minBalance: sentBalance,
          at: v.optional(v.picklist(['join', 'creation'], 'must be join or creation'), 'join'),
        }),
        v.description('the proven wallet must hold at least minBalance of an ERC-20 or ERC-721 of the service’s chain'),
      ),
    ),
  }),
  v.description('who may join; an agent must satisfy all given rules'),
);

const decimal = v.pipe(
  v.string(),
  v.regex(/^(0|[1-9]\d{0,77})$/),
  v.check((digits) => BigInt(digits) <= BALANCE_MAX, 'must be at most 2^256 - 1'),
  v.description('decimal integer, at most 2^256 − 1'),
);

/** The rules as written in events and views. */
export const admission: v.GenericSchema<Admission> = v.strictObject({
  dids: v.exactOptional(v.array(did)),
  provenWallets: v.exactOptional(v.literal(true)),
  token: v.exactOptional(v.strictObject({ address, minBalance: decimal, at: v.picklist(['join', 'creation']) })),
});

const block = { blockNumber: count, blockHash: hash('of the block') };

/** The token's chain in `chamber.created` and, if the balances at the creation count, the block. */
export const tokenChain = v.strictObject({
  chainId: id,
  blockNumber: v.exactOptional(block.blockNumber),
  blockHash: v.exactOptional(block.blockHash),
});

/** The wallet's balance and its block, in `chamber.joined`. */
export const tokenBalance = v.strictObject({ ...block, balance: decimal });

/** Throws FORUM_ERR_ADMISSION. `detail` names the failed rules and how to satisfy them. */
export function requireAdmission({ state, did, account }: DecisionContext): void {
  if (state.admission === null) return;
  const unmet = unmetRules(state, { did, walletProven: account.walletProven });
  if (unmet.length === 0) return;
  const { token } = state.admission;
  const isTokenAskedLast = token !== undefined && !unmet.includes('token');
  const next = isTokenAskedLast ? `; token, asked last: ${tokenRemedy(state, token)}` : '';
  throw notAdmitted(unmet, remedies(state, did, unmet) + next);
}

function notAdmitted(failedRules: readonly AdmissionRule[], detail: string): ForumError {
  return new ForumError('FORUM_ERR_ADMISSION', detail, { failedRules });
}

/** Throws FORUM_ERR_CONFLICT if the wallet already has a seat in a chamber that requires proven wallets. */
export function requireFreeWallet({ state, account }: DecisionContext): void {
  if (!needsProvenWallet(state.admission)) return;
  const seat = seatOfWallet(state, account.walletAddress);
  if (seat === undefined) return;
  throw conflict(`the wallet ${account.walletAddress} already has a seat in chamber ${state.chamberId}: ${seat}`);
}

/**
 * Returns the token data that a join records, if the chamber has a token rule; throws FORUM_ERR_ADMISSION. Call last, because it
 * queries the chain.
 */
export function tokenHeld({ state, account, readChain }: DecisionContext): MovePayloads['chamber.joined']['token'] {
  const rule = state.admission?.token;
  if (rule === undefined || state.tokenChain === null) return undefined;
  const { chainId, blockNumber, blockHash } = state.tokenChain;
  const block = blockNumber === undefined || blockHash === undefined ? null : { blockNumber, blockHash };
  const question = { kind: 'balance', chainId, token: rule.address, wallet: account.walletAddress, block } as const;
  const { balance, ...read } = readChain<'balance'>(question);
  if (BigInt(balance) >= BigInt(rule.minBalance)) return { ...(block ?? read), balance };
  const remedy = `${account.walletAddress} holds ${balance} in block ${read.blockNumber}: ${tokenRemedy(state, rule)}`;
  throw notAdmitted(['token'], `token: ${remedy}`);
}

/** Returns the data of the token's chain that a creation records, if there is a token rule. */
export function chainOfToken(
  admission: Admission | undefined,
  readChain: ReadChain,
): MovePayloads['chamber.created']['token'] {
  const rule = admission?.token;
  if (rule === undefined) return undefined;
  const { chainId, ...block }: BlockReference & { chainId: number } = readChain<'contract'>({
    kind: 'contract',
    address: rule.address,
  });
  return rule.at === 'creation' ? { chainId, ...block } : { chainId };
}
