// Judges recorded blocks on a real chain: the block must have been the newest when the line was written, and a contract must have
// accepted the signature.
import type { Hex } from 'viem';
import { beforeAll, describe, expect, it } from 'vitest';
import { AuditedChain } from '../../src/audit/chain/chain-reader.ts';
import { judgeContractProof } from '../../src/audit/chain/contract-signatures.ts';
import type { AuditPolicy } from '../../src/audit/policy.ts';
import { personalMessageHash } from '../../src/crypto/wallet-signature.ts';
import { type Anvil, spawnAnvil } from '../../src/dev-chain/anvil.ts';
import { openRpc, type Rpc } from '../../src/relayer/rpc.ts';
import { toHex } from '../../src/vocabulary/values.ts';
import { walletOf } from '../kit/wallets.ts';

const CHAIN_ID = 31_337;
const AT = Date.UTC(2030, 0, 1);
/** The age of the block at AT when the next one is mined. */
const NEXT_SECONDS = 1_000;
const WALLET: Hex = `0x${'a1'.repeat(20)}`;
const ECHO: Hex = `0x${'a2'.repeat(20)}`;
const IDENTITY: Hex = `0x${'0'.repeat(39)}4`;
const HASH = toHex(personalMessageHash('text'));

let anvil: Anvil;
let rpc: Rpc;
let chain: AuditedChain;
let block: { readonly number: Hex; readonly hash: Hex };

beforeAll(async () => {
  anvil = await spawnAnvil(['--timestamp', String(AT / 1000 - 10_000), '--no-mining']);
  rpc = openRpc(anvil.rpcUrl);
  chain = new AuditedChain(anvil.rpcUrl, []);
  // One contract always returns the magic value of EIP-1271, the other echoes its input.
  await rpc.request('anvil_setCode', [WALLET, '0x631626ba7e60e01b60005260206000f3']);
  await rpc.request('anvil_setCode', [ECHO, '0x366000600037366000f3']);
  await mineAt(AT);
  block = (await rpc.request('eth_getBlockByNumber', ['latest', false])) as typeof block;
  await mineAt(AT + NEXT_SECONDS * 1000);
  return async () => {
    rpc.close();
    await anvil.kill();
  };
});

async function mineAt(at: number): Promise<void> {
  await rpc.request('evm_setNextBlockTimestamp', [at / 1000]);
  await rpc.request('evm_mine', []);
}

interface Asked {
  readonly wallet?: string;
  readonly signature?: Hex;
  /** The line's time relative to that of the block or of the next block. */
  readonly seconds?: number;
  readonly newerSeconds?: number;
  readonly policy?: AuditPolicy;
}

function judged({ wallet = WALLET, signature = '0x', seconds = 0, newerSeconds, policy = {} }: Asked) {
  const askedAt = AT + (newerSeconds === undefined ? seconds : NEXT_SECONDS + newerSeconds) * 1000;
  const named = { chainId: CHAIN_ID, blockNumber: Number(block.number), blockHash: block.hash, askedAt };
  return judgeContractProof({ eventId: 2, wallet, hash: HASH, signature, ...named }, { chain, policy });
}

describe('a recorded block', () => {
  it.each([[{ seconds: 0 }], [{ seconds: NEXT_SECONDS - 1 }], [{ newerSeconds: 300 }], [{ seconds: -60 }]])(
    'a recorded block is verified while it is about the newest: %j',
    async (asked) => {
      expect(await judged(asked)).toBeUndefined();
    },
  );

  it.each([
    [{ newerSeconds: 301 }, '--max-age'],
    [{ newerSeconds: 86_400 }, '--max-age'],
    [{ seconds: -61 }, '--max-skew'],
  ])('a recorded block is undecided if the service may lag that far behind its chain: %j', async (asked, option) => {
    expect(await judged(asked)).toEqual({ doubt: expect.stringContaining(option) });
  });

  it.each([
    [{ newerSeconds: 86_401 }, 'the chain had already had a block newer than'],
    [{ seconds: -601 }, 's newer than the line'],
    [{ newerSeconds: 901, policy: { maxAgeSeconds: 900 } }, 'the chain had already had a block newer than'],
  ])('a recorded block beyond the limits is broken, whatever the chain returns: %j', async (asked, problem) => {
    expect(await judged(asked)).toContain(problem);
  });

  it('a recorded block is verified within the caller’s limits, which are at least the defaults', async () => {
    expect(await judged({ newerSeconds: 900, policy: { maxAgeSeconds: 900 } })).toBeUndefined();
    expect(await judged({ newerSeconds: 300, policy: { maxAgeSeconds: 10 } })).toBeUndefined();
  });

  it('a recorded block does not hide a rejected signature', async () => {
    const wallet = `0x${'a3'.repeat(20)}`;
    expect(await judged({ wallet, newerSeconds: 301 })).toContain('does not accept the recorded signature');
  });
});

describe('a signature of a contract', () => {
  it.each([
    ['a contract that returns its input', { wallet: ECHO }],
    ['a precompile that returns its input', { wallet: IDENTITY }],
  ])('a contract signature is not accepted by %s', async (_what, asked) => {
    expect(await judged(asked)).toContain('does not accept the recorded signature');
  });

  it('a signature that the validator accepts for an account without code is not a contract signature', async () => {
    const owner = walletOf(0);
    const signature = await owner.signMessage({ message: 'text' });
    expect(await judged({ wallet: owner.address, signature })).toContain('there was no contract at');
  });
});
