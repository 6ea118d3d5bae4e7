// Compares a log's claims about a token and a failed deployment with a real chain. Forged logs have correct hashes.
import { encodeFunctionData, toFunctionSelector } from 'viem';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { AuditedChain } from '../../src/audit/chain/chain-reader.ts';
import { compareChain } from '../../src/audit/chain/compare-chain.ts';
import { deployData } from '../../src/audit/chain/contracts.ts';
import type { AuditPolicy } from '../../src/audit/policy.ts';
import type { ChainInfo } from '../../src/client/forum-client.ts';
import { Agent, ForumClient } from '../../src/client/index.ts';
import { type DeployedIdea, quorumProfile, RELAYED_ABI } from '../../src/relayer/contracts.ts';
import { readRoles } from '../../src/relayer/owner.ts';
import type { QuorumSettings } from '../../src/relayer/quorum-settings.ts';
import { openRpc } from '../../src/relayer/rpc.ts';
import type { Hex } from '../../src/vocabulary/values.ts';
import { type LiveService, newChamber, openLiveService, PHASE_MILLIS, REGISTRATION } from '../client/live-service.ts';
import { playChamber } from '../client/play-chamber.ts';
import { atEnd } from '../kit/temporary.ts';
import { openFaultProxy } from '../relayer/fault-proxy.ts';
import { SETTINGS } from '../relayer/quorum-file.ts';
import { auditLines, type Json, type Line, parse, rechained, toText } from './forge.ts';
import { signed } from './sample.ts';

/** Accounts of the development chain. */
const RELAYER = '0x70997970c51812dc3a010c7d01b50e0d17dc79c8';
const OUTSIDER = '0x3c44cdddb6a900fa2b585dd299e03d12fa4293bc';

let live: LiveService;
let info: ChainInfo;
let chain: AuditedChain;
let deployed: readonly Line[];
let failed: readonly Line[];

/** Chamber 1 gets its token; the factory rejects the idea of chamber 2, whose proposer has no wallet. */
beforeAll(async () => {
  live = await openLiveService({ CHAIN: '' });
  await playChamber(live);
  await playFailure();
  const { chain: known } = await live.forum.health();
  if (known === null || known === undefined) throw new Error('no chain');
  info = known;
  chain = new AuditedChain(info.rpcUrl ?? '', [info.registryAddress]);
  [deployed, failed] = [await linesOf(1), await linesOf(2)];
}, 90_000);
afterAll(() => live.stop());

async function playFailure() {
  const bob = Agent.generate(new ForumClient(live.baseUrl, live.sharedTime));
  await bob.register({ ...REGISTRATION, walletAddress: `0x${'0'.repeat(40)}` });
  const { chamberId } = await bob.createChamber(newChamber(live.now()));
  await bob.joinChamber(chamberId);
  live.advance(PHASE_MILLIS);
  await bob.propose(chamberId, { name: 'None', ticker: 'NONE' });
  live.advance(2 * PHASE_MILLIS);
  await bob.commit(chamberId, [{ ideaId: 'idea-1', bps: 10_000 }]);
  live.advance(PHASE_MILLIS);
  await bob.reveal(chamberId);
  live.advance(PHASE_MILLIS);
  const isOver = async () => (await linesOf(chamberId)).some(({ type }) => type === 'idea.deploy_failed');
  await vi.waitUntil(isOver, { timeout: 20_000 });
}

async function linesOf(chamberId: number): Promise<readonly Line[]> {
  const text = await (await fetch(`${live.baseUrl}/chambers/${chamberId}/events`)).text();
  return parse(text.trimEnd().split('\n'));
}

/** The service's clock runs ahead of the chain's. */
const maxSkewSeconds = 7 * 86_400;

/** Returns the check `claims` for the lines, with correct numbers and hashes. */
async function claims(lines: readonly Line[], policy: AuditPolicy = {}, asked = chain) {
  const audit = await auditLines(toText(rechained(lines)), { maxSkewSeconds, ...policy });
  await compareChain(audit, asked, audit.decisions.state?.chamberId);
  const result = audit.findings.results().find(({ name }) => name === 'claims');
  return [result?.verdict, result?.findings[0]?.sentence ?? result?.note ?? ''];
}

const typeIs =
  (wanted: string) =>
  ({ type }: Line) =>
    type === wanted;
const withPayload = ({ payload, ...line }: Line, changes: Line): Line => ({
  ...line,
  payload: { ...(payload as Line), ...changes },
});

function payloadOf(lines: readonly Line[], type: string): Line {
  const { payload } = lines.find(typeIs(type)) as Line;
  return payload as Line;
}

function denied(txHash: Json): Line[] {
  const payload = { ideaId: 'idea-1', txHash, reason: 'none' };
  return deployed.map((line) =>
    typeIs('idea.deployed')(line) ? { ...line, type: 'idea.deploy_failed', payload } : line,
  );
}

/** Changes members in the payloads of all events of a type. */
function altered(type: string, changes: Line): Line[] {
  return deployed.map((line) => (typeIs(type)(line) ? withPayload(line, changes) : line));
}

/** Calls `find` while the factory's relayer is not the account that committed. */
async function afterRotation<Found>(find: (rpc: ReturnType<typeof openRpc>) => Promise<Found>): Promise<Found> {
  const rpc = openRpc(info.rpcUrl ?? '');
  const before = await rpc.request('evm_snapshot', []);
  try {
    const { owner = '0x' } = (await readRoles(rpc, info.factoryAddress)) ?? {};
    const data = encodeFunctionData({ abi: RELAYED_ABI, functionName: 'setRelayer', args: [OUTSIDER] });
    const txHash = await rpc.request('eth_sendTransaction', [{ from: owner, to: info.factoryAddress, data }]);
    await vi.waitUntil(() => chain.transaction(txHash as Hex), { timeout: 20_000 });
    return await find(rpc);
  } finally {
    await rpc.request('evm_revert', [before]);
    rpc.close();
  }
}

describe('an honest log', () => {
  test('a token in an honest log is verified', async () => {
    expect(await claims(deployed)).toEqual(['verified', `factory ${info.factoryAddress.toLowerCase()}`]);
  });

  test('a commitment in a block before the end of the reveals is undecided, with or without a reorganization', async () => {
    const early = [undefined, { allowReorganized: true }].map(async (policy) => {
      const moved = failed.map((line) =>
        typeIs('chamber.committed')(line) ? withPayload(line, { blockNumber: 999 }) : line,
      );
      return await claims(policy === undefined ? failed : moved, {
        ...policy,
        maxSkewSeconds: 60,
        factories: [info.factoryAddress],
      });
    });
    for (const [verdict, note] of await Promise.all(early)) {
      expect(verdict).toBe('undecided');
      expect(note).toMatch(/its transaction is in a block dated .*, although moves were accepted until .*--max-skew/);
    }
  });

  test('a failed deployment is verified if its factory is named', async () => {
    const policy = { factories: [info.factoryAddress] };
    expect(payloadOf(failed, 'idea.deploy_failed')).toMatchObject({ txHash: null });
    expect(await claims(failed, policy)).toEqual(['verified', `factory ${info.factoryAddress.toLowerCase()}`]);
  });
});

describe('a service that denies a token', () => {
  test('a service that denies a token is caught by the transaction that succeeded', async () => {
    const { txHash = '' } = payloadOf(deployed, 'idea.deployed');
    const [verdict, sentence] = await claims(denied(txHash));
    expect([verdict, sentence]).toEqual(['broken', expect.stringContaining(`transaction ${txHash} succeeded`)]);
  });

  test('a service that denies a token without naming a transaction is caught', async () => {
    const [verdict, sentence] = await claims(denied(null));
    expect([verdict, sentence]).toEqual(['broken', expect.stringContaining('the factory deployed IDEA at 0x')]);
  });

  test('a service that denies a token with a transaction unknown to the chain is caught', async () => {
    expect(await claims(denied(`0x${'12'.repeat(32)}`))).toEqual(['broken', expect.stringContaining('does not know')]);
  });

  test('a service that denies a token without a logged factory call is caught if --factory names the factory', async () => {
    const lines = denied(null).filter((line) => !typeIs('relay.deploy_submitted')(line));
    expect(await claims(lines)).toEqual(['not evaluated', expect.stringContaining('use --factory')]);
    const [verdict] = await claims(lines, { factories: [info.factoryAddress] });
    expect(verdict).toBe('broken');
  });

  test('a service that denies a token that it never deployed is caught, because the call succeeds', async () => {
    const wallet = `0x${'11'.repeat(20)}`;
    const lines = failed.map((line) =>
      typeIs('chamber.proposed')(line) ? withPayload(line, { creatorWallet: wallet }) : line,
    );
    const [verdict, sentence] = await claims(lines, { factories: [info.factoryAddress] });
    expect([verdict, sentence]).toEqual(['broken', expect.stringMatching(/its call succeeds at block \d+$/)]);
  });

  describe('a denied token whose call succeeds', () => {
    const creatorWallet = `0x${'11'.repeat(20)}` as const;
    const policy = () => ({ factories: [info.factoryAddress] });
    const idea = { ideaId: 'idea-1', name: 'None', ticker: 'NONE', description: '', creatorWallet };
    const data = () => deployData(2, idea as Parameters<typeof deployData>[1]);
    /** The log of chamber 2 with a wallet for its proposer. */
    const denying = (...relayed: readonly Line[]) =>
      failed.flatMap((line) => {
        if (typeIs('chamber.proposed')(line)) return [withPayload(line, { creatorWallet })];
        return typeIs('idea.deploy_failed')(line) ? [...relayed.map((other) => ({ ...line, ...other })), line] : [line];
      });
    const succeeds = ['broken', expect.stringMatching(/its call succeeds at block \d+$/)];

    test.each([
      ['too little gas', RELAYER, '0x30d40'],
      ['another sender', OUTSIDER, '0x2dc6c0'],
    ])(
      'a denied token whose transaction failed for %s is caught, because the call succeeds',
      async (_why, from, gas) => {
        const rpc = openRpc(info.rpcUrl ?? '');
        const transaction = { from, to: info.factoryAddress, data: data(), gas };
        const txHash = String(await rpc.request('eth_sendTransaction', [transaction]));
        await vi.waitUntil(() => chain.transaction(txHash as Hex), { timeout: 20_000 });
        rpc.close();
        const lines = denying().map((line) =>
          typeIs('idea.deploy_failed')(line) ? withPayload(line, { txHash }) : line,
        );
        expect(await claims(lines, policy())).toEqual(succeeds);
      },
    );

    test('a denied token is caught if the account became the factory’s relayer after the commitment', async () => {
      expect(await afterRotation(() => claims(denying(), policy()))).toEqual(succeeds);
    });

    test('a denied token is caught if the log holds a transaction of a different account', async () => {
      const payload = { ideaId: 'idea-1', ...(await signed(info.factoryAddress, data(), { nonce: 0, fee: 1n })) };
      const lines = denying({ type: 'relay.deploy_submitted', payload });
      expect(await claims(lines, policy())).toEqual(succeeds);
    });

    const submission = async (...args: Parameters<typeof signed>) => ({
      type: 'relay.deploy_submitted',
      payload: { ideaId: 'idea-1', ...(await signed(...args)) },
    });
    const inQuorumForm = () =>
      quorumProfile({ ...SETTINGS, value: 0n } as unknown as QuorumSettings).deployCall(2, idea as DeployedIdea);

    test.each([
      ['that pays nothing', 0n],
      ['that transfers more than its account holds', 10n ** 30n],
    ])('a denied token is caught despite a call of other contracts %s', async (_what, value) => {
      const other = await submission(info.factoryAddress, inQuorumForm(), { nonce: 1, fee: 1n, value });
      const broken = ['broken', expect.stringContaining('a quorum deployment is logged for it')];
      expect(await claims(denying(other), policy())).toEqual(broken);
      const due = await submission(info.factoryAddress, data(), { nonce: 0, fee: 1n });
      expect(await claims(denying(due, other), policy())).toEqual(broken);
    });

    test('a denied token is caught if the log calls only one of several factories', async () => {
      const factories = [info.factoryAddress, OUTSIDER] as const;
      expect(await claims(denying(), { factories })).toEqual([
        'undecided',
        expect.stringMatching(
          /its call succeeds at block \d+ when sent to 0x\w+, a contract that no logged transaction for this idea calls: .*--factory/,
        ),
      ]);
      const due = await submission(info.factoryAddress, data(), { nonce: 0, fee: 1n });
      expect(await claims(denying(due), { factories })).toEqual(succeeds);
    });

    test('a denied token is not evaluated if the RPC lacks the state of the block', async () => {
      const proxy = await openFaultProxy(info.rpcUrl ?? '');
      atEnd(() => proxy.close());
      proxy.fault = (method, params = []) => {
        const { to } = Object(params[0]) as { readonly to?: string };
        const isOfState = method === 'eth_getBalance' || to?.toLowerCase() === info.factoryAddress.toLowerCase();
        return isOfState ? { kind: 'error', message: 'missing trie node' } : undefined;
      };
      const stateless = new AuditedChain(proxy.url, [info.registryAddress]);
      expect(await claims(denying(), policy(), stateless)).toEqual([
        'not evaluated',
        expect.stringMatching(/the RPC does not have the state of block \d+$/),
      ]);
    });

    test('a denied token whose transaction spent its gas on an access list is caught', async () => {
      const rpc = openRpc(info.rpcUrl ?? '');
      const call = { from: RELAYER, to: info.factoryAddress, data: data() };
      const needed = BigInt(String(await rpc.request('eth_estimateGas', [call])));
      const accessList = Array.from({ length: 100 }, (_, index) => ({
        address: `0x${(index + 1).toString(16).padStart(40, '0')}`,
        storageKeys: [],
      }));
      const transaction = { ...call, accessList, gas: `0x${(needed + 50_000n).toString(16)}` };
      const txHash = String(await rpc.request('eth_sendTransaction', [transaction]));
      await vi.waitUntil(() => chain.transaction(txHash as Hex), { timeout: 20_000 });
      rpc.close();
      const lines = denying().map((line) =>
        typeIs('idea.deploy_failed')(line) ? withPayload(line, { txHash }) : line,
      );
      expect(await claims(lines, policy())).toEqual(succeeds);
    });
  });
});

describe('a new relayer of the factory', () => {
  const policy = () => ({ factories: [info.factoryAddress] });

  test('a failed deployment is verified after a change of the factory’s relayer', async () => {
    const [verdict] = await afterRotation(() => claims(failed, policy()));
    expect(verdict).toBe('verified');
  });

  test('a deployment that fails only for its caller is undecided if the factory names no relayer', async () => {
    const result = await afterRotation(async (rpc) => {
      // The code stores the selector's four bytes and reverts with them.
      const code = `0x63${toFunctionSelector('NotRelayer(address)').slice(2)}6000526004601cfd`;
      await rpc.request('anvil_setCode', [info.factoryAddress, code]);
      return await claims(failed, policy());
    });
    expect(result).toEqual(['undecided', expect.stringContaining('from any known account')]);
  });

  test('a token deployed by the factory’s new relayer is verified', async () => {
    const result = await afterRotation(async (rpc) => {
      const creatorWallet = `0x${'11'.repeat(20)}` as const;
      const idea = { ideaId: 'idea-1', name: 'None', ticker: 'NONE', description: '', creatorWallet };
      const data = deployData(2, idea as Parameters<typeof deployData>[1]);
      const sent = { from: OUTSIDER, to: info.factoryAddress, data };
      const txHash = String(await rpc.request('eth_sendTransaction', [sent])) as Hex;
      const transaction = await vi.waitUntil(() => chain.transaction(txHash), { timeout: 20_000 });
      const tokenAddress = `0x${transaction.logs.find(({ address }) => address === info.factoryAddress.toLowerCase())?.topics[1]?.slice(26)}`;
      const payload = { ideaId: 'idea-1', tokenAddress, txHash, graduatedAt: transaction.at };
      const lines = failed.map((line) => {
        if (typeIs('chamber.proposed')(line)) return withPayload(line, { creatorWallet });
        return typeIs('idea.deploy_failed')(line) ? { ...line, type: 'idea.deployed', payload } : line;
      });
      return await claims(lines, policy());
    });
    expect(result).toEqual(['verified', expect.stringContaining('factory')]);
  });
});

describe('a reorganized chain', () => {
  const reorganized = { allowReorganized: true, maxSkewSeconds: 3 * 86_400 };

  test('a recorded time that the service could not have observed is undecided after a reorganization', async () => {
    for (const [type, name] of [
      ['chamber.committed', 'committedAt'],
      ['idea.deployed', 'graduatedAt'],
    ] as const) {
      for (const time of ['1970-01-01T00:00:00.000Z', '2100-01-01T00:00:00.000Z'])
        expect(await claims(altered(type, { [name]: time }), reorganized)).toEqual([
          'undecided',
          expect.stringContaining(`names a block dated ${time}`),
        ]);
    }
  });

  test('a different time after the end of the reveals is verified after a reorganization', async () => {
    const { committedAt, graduatedAt } = {
      ...payloadOf(deployed, 'chamber.committed'),
      ...payloadOf(deployed, 'idea.deployed'),
    };
    const later = (at: Json | undefined) => new Date(Date.parse(String(at)) + 2_000).toISOString();
    const moved = altered('chamber.committed', { committedAt: later(committedAt), blockNumber: 999 }).map((line) =>
      typeIs('idea.deployed')(line) ? withPayload(line, { graduatedAt: later(graduatedAt) }) : line,
    );
    const [verdict] = await claims(moved, reorganized);
    expect(verdict).toBe('verified');
    expect((await claims(moved))[0]).toBe('undecided');
  });
});

describe('a token', () => {
  test('a token with a creator other than the proposer is reported', async () => {
    const lines = altered('chamber.proposed', { creatorWallet: `0x${'22'.repeat(20)}` });
    expect(await claims(lines)).toEqual([
      'broken',
      expect.stringMatching(/^event \d+ .*the creator of 0x\w+ is 0x1{40}/),
    ]);
  });

  test.each(['name', 'description'])('a token whose %s differs from its idea is reported', async (member) => {
    // The payload is used if the request is missing.
    const lines = altered('chamber.proposed', { [member]: 'Other' })
      .filter((line) => !typeIs('relay.deploy_submitted')(line))
      .map((line) => (typeIs('chamber.proposed')(line) ? { ...line, request: null } : line));
    const [verdict, sentence] = await claims(lines);
    expect([verdict, sentence]).toEqual(['broken', expect.stringContaining('did not deploy idea-1')]);
  });

  test('a token at a different address is reported', async () => {
    const lines = altered('idea.deployed', { tokenAddress: `0x${'22'.repeat(20)}` });
    expect(await claims(lines)).toEqual(['broken', expect.stringContaining(`did not deploy 0x${'22'.repeat(20)}`)]);
  });

  test('a token from a factory that --factory does not name is reported', async () => {
    const [verdict, sentence] = await claims(deployed, { factories: [info.registryAddress] });
    expect([verdict, sentence]).toEqual([
      'broken',
      expect.stringContaining('which is not one of the service’s factories'),
    ]);
  });
});
