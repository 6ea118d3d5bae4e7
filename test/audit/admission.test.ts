// Audits who was allowed to join, from the lines, the accounts and the chain, also in logs that a service forged.
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { compareBalances } from '../../src/audit/chain/balances.ts';
import { AuditedChain } from '../../src/audit/chain/chain-reader.ts';
import { type Anvil, spawnAnvil } from '../../src/dev-chain/anvil.ts';
import { openRpc, type Rpc } from '../../src/relayer/rpc.ts';
import { TokenReader } from '../../src/relayer/token-reader.ts';
import { deadlinesFrom, enterPhase } from '../kit/chambers.ts';
import { type Contract, deployContract } from '../kit/contracts.ts';
import type { Signer } from '../kit/signer.ts';
import { atEnd } from '../kit/temporary.ts';
import { TestService } from '../kit/test-service.ts';
import { agentWith, provenRegistration, walletOf } from '../kit/wallets.ts';
import { openFaultProxy } from '../relayer/fault-proxy.ts';
import { audit, auditLines, type Line, parse, rechained, toText } from './forge.ts';
import { payloadOf } from './forgeries.ts';

let anvil: Anvil;
let rpc: Rpc;
let token: Contract;
let lines: Line[] = [];
let accounts = '';

/** Indexes into the lines. */
const [ANN_JOINED, PROPOSED] = [2, 4] as const;

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

/** ANN lists herself and admits BOB; both hold the token. ANN changes her wallet before she proposes. */
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

const joined = () => payloadOf(lines[ANN_JOINED] as Line);

/** The log with a different payload in ANN's join, and correct numbers and hashes. */
function forged(payload: Line): string {
  return toText(rechained(lines.with(ANN_JOINED, { ...lines[ANN_JOINED], payload }) as Line[]));
}

describe('admission by lines and accounts', () => {
  test('an honest log whose proposal names the wallet of the seat is sound', async () => {
    const { broken, check } = await audit(toText(rechained(lines)), { accounts });
    expect(broken).toEqual([]);
    expect(['rules', 'payload', 'registration'].map((name) => check(name as 'rules').verdict)).toEqual(
      Array(3).fill('verified'),
    );
    expect(lines[PROPOSED]?.['payload']).toMatchObject({ creatorWallet: walletOf(1).address });
  });

  test('a wallet that the account has not proven is reported', async () => {
    const stripped = accounts.replaceAll(/,"walletProof":\{[^}]*\}/g, '');
    expect(stripped).not.toBe(accounts);
    const { broken } = await audit(toText(rechained(lines)), { accounts: stripped });
    expect(broken).toContain('registration');
  });
});

describe('balances on the chain', () => {
  async function balances(text: string, rpcUrl = anvil.rpcUrl) {
    const chamber = await auditLines(text, {});
    await compareBalances(chamber, { chain: new AuditedChain(rpcUrl, []), policy: {} });
    const { verdict, counts, findings, note } =
      chamber.findings.results().find(({ name }) => name === 'balances') ?? {};
    return { verdict, counts, sentence: findings?.[0]?.sentence ?? note };
  }

  test('recorded balances that match the block are verified', async () => {
    expect(await balances(toText(rechained(lines)))).toMatchObject({ verdict: 'verified', counts: { verified: 2 } });
  });

  test('an altered balance that the rule would allow is reported', async () => {
    const text = forged({ ...joined(), token: { ...(joined()['token'] as Line), balance: '8' } });
    expect((await audit(text, { accounts })).broken).toEqual([]);
    expect(await balances(text)).toEqual({
      verdict: 'broken',
      counts: { verified: 1, broken: 1, undecided: 0, notEvaluated: 0 },
      sentence: expect.stringContaining('it records a balance of 8'),
    });
  });

  test('a wallet with a different balance is reported', async () => {
    const text = forged({ ...joined(), walletAddress: walletOf(9).address });
    expect((await balances(text)).sentence).toContain('shows a balance of 0');
  });

  test('a balance without a wallet is reported', async () => {
    const { walletAddress: _, ...payload } = joined();
    expect((await balances(forged(payload))).sentence).toContain('records a balance of 7 but no wallet');
  });

  test.each([
    ['another chain', (method: string) => method === 'eth_chainId' && '0x1', 'serves chain 1'],
    ['a different block at that height', (method: string) => method === 'eth_getBlockByNumber' && 'other', ', not 0x'],
    ['no such block', (method: string) => method === 'eth_getBlockByNumber' && null, 'is unknown there'],
  ] as const)('a balance is undecided if the RPC has %s', async (_what, result, note) => {
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

  test('a balance is undecided if the node lacks the state', async () => {
    const proxy = await openFaultProxy(anvil.rpcUrl);
    atEnd(() => proxy.close());
    proxy.fault = (method) => (method === 'eth_call' ? { kind: 'error', message: 'missing trie node' } : undefined);
    expect(await balances(toText(rechained(lines)), proxy.url)).toMatchObject({
      verdict: 'undecided',
      sentence: expect.stringContaining('does not have the state of block'),
    });
  });
});
