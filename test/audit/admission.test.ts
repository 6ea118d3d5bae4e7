// Who took part, as an auditor judges it from the lines, the accounts and the chain; and what a service may have made of it.
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { compareBalances } from '../../src/audit/chain/balances.ts';
import { AuditedChain } from '../../src/audit/chain/chain-reader.ts';
import { type Anvil, spawnAnvil } from '../../src/relayer/anvil.ts';
import { openRpc, type Rpc } from '../../src/relayer/rpc.ts';
import { TokenReader } from '../../src/relayer/token-reader.ts';
import { deadlinesFrom, enterPhase } from '../kit/chambers.ts';
import { type Contract, deployContract } from '../kit/contracts.ts';
import type { Signer } from '../kit/signer.ts';
import { atEnd } from '../kit/temporary.ts';
import { TestService } from '../kit/test-service.ts';
import { agentWith, provenRegistration, walletOf } from '../kit/wallets.ts';
import { openFaultProxy } from '../relayer/fault-proxy.ts';
import { audit, auditLines, type Json, type Line, parse, rechained, toText } from './forge.ts';

let anvil: Anvil;
let rpc: Rpc;
let token: Contract;
let lines: Line[] = [];
let accounts = '';

/** The places of the lines in their log. */
const [CREATED, ADMITTED, ANN_JOINED, BOB_JOINED, PROPOSED] = [0, 1, 2, 3, 4] as const;

beforeAll(async () => {
  anvil = await spawnAnvil([]);
  rpc = openRpc(anvil.rpcUrl);
  token = await deployContract(rpc, 'admission/Erc20');
  for (const index of [1, 2]) await token.send('mint', walletOf(index).address, 7n);
  return async () => {
    rpc.close();
    await anvil.kill();
  };
});

beforeEach(async () => {
  if (lines.length === 0) await play();
});

/** ANN lists herself and admits BOB; both hold the token. When she proposes, she has another wallet than at her join. */
async function play(): Promise<void> {
  const service = new TestService();
  const reader = new TokenReader({ rpcUrl: anvil.rpcUrl, chainId: 31_337 });
  atEnd(() => reader.close());
  service.forum.useChain(reader);
  const [ann, bob] = [await agentWith(service, walletOf(1)), await agentWith(service, walletOf(2))];
  const rule = { address: token.address, minBalance: '5', at: 'creation' };
  const admission = { dids: [ann.did], provenWallets: true, token: rule };
  const body = { name: 'Test', ...deadlinesFrom(service.clock.read()), admission };
  await service.must('POST', '/chambers', { by: ann, body });
  await service.must('POST', '/chambers/1/admit', { by: ann, body: { did: bob.did } });
  for (const by of [ann, bob]) await service.must('POST', '/chambers/1/join', { by });
  await service.must('POST', '/register', { by: ann, body: await provenRegistration(service, ann, walletOf(3)) });
  await enterPhase(service, 1, 'PROPOSAL');
  await service.must('POST', '/chambers/1/propose', { by: ann, body: { name: 'Idea', ticker: 'ABC' } });
  lines = parse(await service.lines(1));
  accounts = (await accountOf(service, ann)) + (await accountOf(service, bob));
}

async function accountOf(service: TestService, { did }: Signer): Promise<string> {
  return (await service.log.readPage(did, 0, 100)).ndjson.toString();
}

/** The log with one payload changed, and numbers and hashes set right. */
function forged(place: number, change: (payload: Record<string, Json>) => Record<string, Json | undefined>): string {
  const altered = lines.map((line, index) => {
    const payload = change(structuredClone(line['payload']) as Record<string, Json>);
    return index === place ? (JSON.parse(JSON.stringify({ ...line, payload })) as Line) : line;
  });
  return toText(rechained(altered));
}

const tokenOf = (payload: Record<string, Json>) => payload['token'] as Record<string, Json>;

describe('by lines and accounts', () => {
  test('the honest log is sound, with the wallet of the seat in the proposal', async () => {
    const { broken, check } = await audit(toText(rechained(lines)), { accounts });
    expect(broken).toEqual([]);
    expect(['rules', 'payload', 'registration'].map((name) => check(name as 'rules').verdict)).toEqual(
      Array(3).fill('verified'),
    );
    expect(lines[PROPOSED]?.['payload']).toMatchObject({ creatorWallet: walletOf(1).address });
  });

  test.each([
    ['a join without its balance', BOB_JOINED, ({ token: _, ...rest }) => rest, 'rules', 'does not record'],
    [
      'a balance below the rule',
      BOB_JOINED,
      (payload) => ({ ...payload, token: { ...tokenOf(payload), balance: '4' } }),
      'rules',
      'must hold at least 5',
    ],
    [
      'a balance in another block than the creation',
      BOB_JOINED,
      (payload) => ({ ...payload, token: { ...tokenOf(payload), blockNumber: 1 } }),
      'payload',
      'token is',
    ],
    ['a creation without the chain of its token', CREATED, ({ token: _, ...rest }) => rest, 'rules', 'does not record'],
    [
      'a creation without the block of its token',
      CREATED,
      (payload) => ({ ...payload, token: { chainId: 31_337 } }),
      'rules',
      'does not record',
    ],
    [
      'a creation with another rule than was signed',
      CREATED,
      (payload) => ({ ...payload, admission: { dids: [] } }),
      'payload',
      'admission is',
    ],
    [
      'two seats for one wallet',
      BOB_JOINED,
      (payload) => ({ ...payload, walletAddress: walletOf(1).address }),
      'rules',
      'already has a seat',
    ],
    [
      'a join without a proven wallet',
      BOB_JOINED,
      (payload) => ({ ...payload, walletProven: false }),
      'rules',
      'provenWallets: ',
    ],
    [
      'a proposal for another wallet than that of the seat',
      PROPOSED,
      (payload) => ({ ...payload, creatorWallet: walletOf(3).address }),
      'payload',
      'creatorWallet is',
    ],
    [
      'an admission of another agent than was signed',
      ADMITTED,
      (payload) => ({ ...payload, did: `${String(lines[CREATED]?.['did']).slice(0, -1)}9` }),
      'payload',
      'did is',
    ],
  ] as const satisfies readonly (readonly [
    string,
    number,
    (payload: Record<string, Json>) => Record<string, Json | undefined>,
    'rules' | 'payload',
    string,
  ])[])('%s is found', async (_what, place, change, name, sentence) => {
    const { findings } = await audit(forged(place, change), { accounts });
    const [finding] = findings(name).filter(({ eventIds }) => eventIds.includes(place + 1));
    expect(finding?.sentence).toContain(sentence);
  });

  test('an admission that was left out is missed at the join', async () => {
    const { findings } = await audit(toText(rechained(lines.filter((_, index) => index !== ADMITTED))), { accounts });
    expect(findings('rules').map(({ sentence }) => sentence)).toEqual([
      expect.stringContaining('is not on the list of chamber 1'),
    ]);
  });

  test('an admission by another key is found, signed or not', async () => {
    const altered = lines.map((line, index) =>
      index === ADMITTED ? { ...line, did: lines[BOB_JOINED]?.['did'] as Json } : line,
    );
    const { findings } = await audit(toText(rechained(altered)), { accounts });
    expect(findings('signature')).toMatchObject([{ eventIds: [ADMITTED + 1] }]);
    expect(findings('rules')[0]).toMatchObject({ sentence: expect.stringContaining('only the creator') });
  });

  test('a wallet that the account has not proven is found', async () => {
    const stripped = accounts.replaceAll(/,"walletProof":\{[^}]*\}/g, '');
    expect(stripped).not.toBe(accounts);
    const { broken } = await audit(toText(rechained(lines)), { accounts: stripped });
    expect(broken).toContain('registration');
  });
});

describe('by the chain', () => {
  async function balances(text: string, rpcUrl = anvil.rpcUrl) {
    const chamber = await auditLines(text, {});
    await compareBalances(chamber, new AuditedChain(rpcUrl, []));
    const { verdict, counts, findings, note } =
      chamber.findings.results().find(({ name }) => name === 'balances') ?? {};
    return { verdict, counts, sentence: findings?.[0]?.sentence ?? note };
  }

  test('the balances that joins record are those of the block', async () => {
    expect(await balances(toText(rechained(lines)))).toMatchObject({ verdict: 'verified', counts: { verified: 2 } });
  });

  test('an altered balance is found, though the rule would allow it', async () => {
    const text = forged(ANN_JOINED, (payload) => ({ ...payload, token: { ...tokenOf(payload), balance: '8' } }));
    expect((await audit(text, { accounts })).broken).toEqual([]);
    expect(await balances(text)).toEqual({
      verdict: 'broken',
      counts: { verified: 1, broken: 1, undecided: 0, notEvaluated: 0 },
      sentence: expect.stringContaining('it records a balance of 8'),
    });
  });

  test('a wallet with another balance is found', async () => {
    const text = forged(ANN_JOINED, (payload) => ({ ...payload, walletAddress: walletOf(9).address }));
    expect((await balances(text)).sentence).toContain('shows a balance of 0');
  });

  test.each([
    ['another chain', (method: string) => method === 'eth_chainId' && '0x1', 'serves chain 1'],
    ['another block at that height', (method: string) => method === 'eth_getBlockByNumber' && 'other', 'and not 0x'],
    ['no such block', (method: string) => method === 'eth_getBlockByNumber' && null, 'is not known there'],
  ] as const)('is undecided where the RPC has %s', async (_what, result, note) => {
    const proxy = await openFaultProxy(anvil.rpcUrl);
    atEnd(() => proxy.close());
    const latest = await rpc.request('eth_getBlockByNumber', ['0x0', false]);
    proxy.fault = (method) => {
      const made = result(method);
      return made === false ? undefined : { kind: 'result', result: made === 'other' ? latest : made };
    };
    const outcome = await balances(toText(rechained(lines)), proxy.url);
    expect(outcome).toMatchObject({ verdict: 'undecided', counts: { undecided: 2 } });
    expect(outcome.sentence).toContain(note);
  });

  test('is undecided where the node has no state', async () => {
    const proxy = await openFaultProxy(anvil.rpcUrl);
    atEnd(() => proxy.close());
    proxy.fault = (method) => (method === 'eth_call' ? { kind: 'error', message: 'missing trie node' } : undefined);
    expect(await balances(toText(rechained(lines)), proxy.url)).toMatchObject({
      verdict: 'undecided',
      sentence: expect.stringContaining('does not have the state of block'),
    });
  });
});
