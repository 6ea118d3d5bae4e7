// Chambers whose members must hold a token, on a real chain with real contracts, some of which are hostile.
import { beforeAll, describe, expect, it } from 'vitest';
import { type Anvil, spawnAnvil } from '../../src/dev-chain/anvil.ts';
import { openRpc, type Rpc } from '../../src/relayer/rpc.ts';
import { TokenReader } from '../../src/relayer/token-reader.ts';
import { deadlinesFrom, openChamber } from '../kit/chambers.ts';
import { type Contract, deployContract } from '../kit/contracts.ts';
import type { Signer } from '../kit/signer.ts';
import { atEnd } from '../kit/temporary.ts';
import { refusal, TestService } from '../kit/test-service.ts';
import { agentWith, provenRegistration, walletOf } from '../kit/wallets.ts';
import { type FaultProxy, openFaultProxy } from '../relayer/fault-proxy.ts';

const CHAIN_ID = 31_337;
const OTHER_WORDS = `0x${'11'.repeat(20)}`;

let anvil: Anvil;
let rpc: Rpc;
let erc20: Contract;
let erc721: Contract;

beforeAll(async () => {
  anvil = await spawnAnvil([]);
  rpc = openRpc(anvil.rpcUrl);
  erc20 = await deployContract(rpc, 'admission/Erc20');
  erc721 = await deployContract(rpc, 'admission/Erc721');
  return async () => {
    rpc.close();
    await anvil.kill();
  };
});

async function openService(answerMillisMax?: number): Promise<{ service: TestService; proxy: FaultProxy }> {
  const service = new TestService();
  const proxy = await openFaultProxy(anvil.rpcUrl);
  const reader = new TokenReader({
    rpcUrl: proxy.url,
    chainId: CHAIN_ID,
    ...(answerMillisMax === undefined ? {} : { answerMillisMax }),
  });
  service.forum.useChain(reader);
  atEnd(() => {
    reader.close();
    proxy.close();
  });
  return { service, proxy };
}

function rule(token: Contract, changes: Readonly<Record<string, unknown>> = {}) {
  return { admission: { token: { address: token.address, minBalance: '5', ...changes } } };
}

function join(service: TestService, chamberId: number, by: Signer) {
  return service.request('POST', `/chambers/${chamberId}/join`, { by });
}

async function create(service: TestService, by: Signer, changes: Readonly<Record<string, unknown>>) {
  const body = { name: 'Test', ...deadlinesFrom(service.clock.read()), ...changes };
  return service.request('POST', '/chambers', { by, body });
}

let wallets = 100;
/** A wallet that no other test has used. */
const newWallet = () => walletOf(wallets++);

describe('a chamber whose members must hold a token', () => {
  it.each(['join', 'creation'] as const)(
    'a chamber whose members must hold a token records chain, block and balance (at: %s)',
    async (at) => {
      const { service } = await openService();
      const wallet = newWallet();
      await erc20.send('mint', wallet.address, 7n);
      const ann = await agentWith(service, wallet);
      const id = await openChamber(service, [ann], rule(erc20, { at }));
      const [created, joined] = await service.events(id);
      const block = { blockNumber: expect.any(Number), blockHash: expect.stringMatching(/^0x[0-9a-f]{64}$/) };
      expect(created).toMatchObject({ payload: { admission: { token: { minBalance: '5', at } } } });
      expect(created?.payload).toHaveProperty(
        'token',
        at === 'creation' ? { chainId: CHAIN_ID, ...block } : { chainId: CHAIN_ID },
      );
      expect(joined?.payload).toHaveProperty('token', { ...block, balance: '7' });
      expect(await service.must('GET', `/chambers/${id}`)).toMatchObject({
        admission: { token: { address: erc20.address, minBalance: '5', at } },
      });
    },
  );

  it('a chamber whose members must hold a token accepts an NFT collection like a token, and an agent that has just received a token', async () => {
    const { service } = await openService();
    const wallet = newWallet();
    const ann = await agentWith(service, wallet);
    const id = await openChamber(service, [], rule(erc721, { minBalance: 1 }));
    const refused = await join(service, id, ann);
    expect(refused).toMatchObject({ status: 403, body: { error: 'FORUM_ERR_ADMISSION', failedRules: ['token'] } });
    expect(refused.body.detail).toContain(`must hold at least 1 of ${erc721.address} on chain ${CHAIN_ID}`);
    await erc721.send('mint', wallet.address, BigInt(wallet.address));
    expect(await join(service, id, ann)).toMatchObject({ status: 200 });
  });

  it('a chamber whose members must hold a token counts the balance at the creation, even if the token has been transferred since', async () => {
    const { service } = await openService();
    const [early, late] = [newWallet(), newWallet()];
    const [ann, bob] = [await agentWith(service, early), await agentWith(service, late)];
    await erc20.send('mint', early.address, 5n);
    const id = await openChamber(service, [], rule(erc20, { at: 'creation' }));
    await erc20.send('mint', late.address, 50n);
    expect(await join(service, id, bob)).toMatchObject({ status: 403, body: { failedRules: ['token'] } });
    expect(await join(service, id, ann)).toMatchObject({ status: 200 });
  });

  it('a chamber whose members must hold a token names in one response all unmet rules of an agent without a proven wallet', async () => {
    const { service, proxy } = await openService();
    const [wallet, bob] = [newWallet(), await service.agent()];
    await erc20.send('mint', wallet.address, 5n);
    const id = await openChamber(service, [], rule(erc20));
    proxy.requests.length = 0;
    const refused = await join(service, id, bob);
    expect(refused).toMatchObject({ status: 403, body: { failedRules: ['provenWallets', 'token'] } });
    expect(refused.body.detail).toMatch(
      /sign POST \/register again.*; token: the proven wallet must hold at least 5 of/,
    );
    expect(proxy.requests).toEqual([]);
    await service.must('POST', '/register', { by: bob, body: await provenRegistration(service, bob, wallet) });
    expect(await join(service, id, bob)).toMatchObject({ status: 200 });
  });

  it('a chamber whose members must hold a token gives a wallet one seat, even if several keys with this wallet join at once', async () => {
    const { service } = await openService();
    const wallet = newWallet();
    await erc20.send('mint', wallet.address, 5n);
    const keys = [];
    for (let index = 0; index < 8; index++) keys.push(await agentWith(service, wallet));
    const id = await openChamber(service, [], rule(erc20));
    const statuses = (await Promise.all(keys.map((by) => join(service, id, by)))).map(({ status }) => status);
    expect(statuses.sort()).toEqual([200, ...Array(7).fill(409)]);
  });
});

describe('the chain is queried last, and once', () => {
  it.each<readonly [string, string, (service: TestService, id: number, by: Signer) => Promise<unknown>]>([
    ['that is not in LOBBY', 'FORUM_ERR_PHASE', async (service) => service.clock.advance(3_600_000)],
    ['by a member', 'FORUM_ERR_CONFLICT', async (service, id, by) => join(service, id, by)],
    [
      'by another key of a wallet with a seat',
      'FORUM_ERR_CONFLICT',
      async (service, id, by) => {
        const other = await service.agent();
        const wallet = walletOf(wallets - 1);
        await service.must('POST', '/register', { by: other, body: await provenRegistration(service, other, wallet) });
        expect(await join(service, id, other)).toMatchObject({ status: 200 });
        expect(by.did).not.toBe(other.did);
      },
    ],
  ])('a join %s causes no call', async (_what, code, prepare) => {
    const { service, proxy } = await openService();
    const wallet = newWallet();
    await erc20.send('mint', wallet.address, 5n);
    const ann = await agentWith(service, wallet);
    const id = await openChamber(service, [], rule(erc20));
    await prepare(service, id, ann);
    proxy.requests.length = 0;
    expect((await join(service, id, ann)).body.error).toBe(code);
    expect(proxy.requests).toEqual([]);
  });

  it('a retry gets the original response again without a call, even if the chain is unavailable', async () => {
    const { service, proxy } = await openService();
    const wallet = newWallet();
    await erc20.send('mint', wallet.address, 5n);
    const ann = await agentWith(service, wallet);
    const create = service.prepare('POST', '/chambers', {
      by: ann,
      body: { name: 'Test', ...deadlinesFrom(service.clock.read()), ...rule(erc20) },
    });
    const { body: created } = await service.send(create);
    const joining = service.prepare('POST', `/chambers/${created.chamberId}/join`, { by: ann });
    const first = await service.send(joining);
    expect(first.status).toBe(200);
    proxy.close();
    proxy.requests.length = 0;
    service.clock.advance(100 * 86_400_000);
    expect((await service.send(create)).body).toEqual(created);
    expect((await service.send(joining)).body).toEqual(first.body);
    expect(proxy.requests).toEqual([]);
  });

  it('two concurrent copies of a join get one seat and the same response', async () => {
    const { service } = await openService();
    const wallet = newWallet();
    await erc20.send('mint', wallet.address, 5n);
    const ann = await agentWith(service, wallet);
    const id = await openChamber(service, [], rule(erc20));
    const joining = service.prepare('POST', `/chambers/${id}/join`, { by: ann });
    const answers = await Promise.all([1, 2, 3].map(() => service.send(joining)));
    expect(answers.map(({ status, body }) => [status, body.turnOrder])).toEqual(Array(3).fill([200, 0]));
    expect(await service.lines(id)).toHaveLength(2);
  });
});

describe('an address without a valid token', () => {
  it('a token address without code is 400 at the creation', async () => {
    const { service } = await openService();
    const answer = await create(
      service,
      await service.agent(),
      rule({ ...erc20, address: OTHER_WORDS as `0x${string}` }),
    );
    expect(answer).toMatchObject(refusal(400, 'FORUM_ERR_VALIDATION'));
    expect(answer.body.detail).toMatch(/^admission\.token\.address: no contract at 0x1111/);
  });

  it.each([
    [0, 'reverted'],
    [1, 'reverted'],
    [2, 'returned 0 bytes, not 32'],
    [3, 'returned 31 bytes, not 32'],
    [4, 'returned 64 bytes, not 32'],
    [5, 'returned 100000 bytes, not 32'],
    [6, 'used more than 1000000 gas'],
  ])(
    'a misbehaving token contract is 403 at the join, and the detail describes its behaviour (%i: %s)',
    async (behaviour, problem) => {
      const { service } = await openService();
      const hostile = await deployContract(rpc, 'admission/HostileToken', behaviour);
      const ann = await agentWith(service, newWallet());
      const id = await openChamber(service, [], rule(hostile));
      expect(await join(service, id, ann)).toMatchObject({
        status: 403,
        body: {
          error: 'FORUM_ERR_ADMISSION',
          detail: `token: balanceOf of ${hostile.address} fails: ${problem}`,
          failedRules: ['token'],
        },
      });
    },
  );

  it('a token address whose invalid code consumes all the gas is 403 at the join', async () => {
    const { service } = await openService();
    const hostile = await deployContract(rpc, 'admission/HostileToken', 0);
    await rpc.request('anvil_setCode', [hostile.address, '0xfe']);
    const id = await openChamber(service, [], rule(hostile));
    expect(await join(service, id, await agentWith(service, newWallet()))).toMatchObject({
      status: 403,
      body: {
        error: 'FORUM_ERR_ADMISSION',
        detail: `token: balanceOf of ${hostile.address} fails: used more than 1000000 gas`,
      },
    });
  });
});

describe('a chain that fails', () => {
  it.each([
    ['is unavailable', () => ({ kind: 'reset' }), 'RPC unreachable'],
    ['does not respond in time', () => ({ kind: 'hang' }), 'did not respond within 0.3 s'],
    [
      'has a different chain id',
      (method: string) => method === 'eth_chainId' && { kind: 'result', result: '0x1' },
      'serves chain 1',
    ],
    [
      'lacks the state',
      (method: string) => method === 'eth_call' && { kind: 'error', message: 'missing trie node' },
      'missing trie node',
    ],
    [
      'has a different block',
      (method: string) => method === 'eth_call' && { kind: 'error', message: 'hash is not currently canonical' },
      'canonical',
    ],
    ['returns no hex', (method: string) => method === 'eth_call' && { kind: 'result', result: 'junk' }, 'malformed'],
  ] as const)(
    'a chain that %s causes 503, and the same request gets a seat afterwards',
    async (_what, fault, problem) => {
      const { service, proxy } = await openService(300);
      const wallet = newWallet();
      await erc20.send('mint', wallet.address, 5n);
      const ann = await agentWith(service, wallet);
      const id = await openChamber(service, [], rule(erc20));
      const joining = service.prepare('POST', `/chambers/${id}/join`, { by: ann });
      proxy.fault = (method) => (fault(method) || undefined) as ReturnType<FaultProxy['fault']>;
      const answer = await service.send(joining);
      expect(answer).toMatchObject({ status: 503, body: { error: 'FORUM_ERR_UNAVAILABLE', retryAfter: 1 } });
      expect(answer.body.detail).toContain(problem);
      expect(answer.body.detail).not.toContain('a-key-that-must-not-show');
      proxy.fault = () => undefined;
      expect(await service.send(joining)).toMatchObject({ status: 200 });
    },
  );

  it('a chain that fails causes 503 at a creation, and nothing is created', async () => {
    const { service, proxy } = await openService(300);
    const by = await service.agent();
    proxy.fault = () => ({ kind: 'reset' });
    expect(await create(service, by, rule(erc20))).toMatchObject({ status: 503 });
    expect(await service.must('GET', '/chambers')).toEqual([]);
  });
});

it('joins that wait for a slow chain delay no batch', { timeout: 60_000 }, async () => {
  const { service, proxy } = await openService();
  const [by, quick] = [await service.agent(), await openChamber(service, [await service.agent()])];
  const keys: Signer[] = [];
  for (let index = 0; index < 8; index++) {
    const wallet = newWallet();
    await erc20.send('mint', wallet.address, 5n);
    keys.push(await agentWith(service, wallet));
  }
  const slow = await openChamber(service, [], rule(erc20));
  // Two rounds of requests take 3 s in total.
  proxy.fault = async () => {
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    return undefined;
  };
  const startedAt = performance.now();
  const joins = Promise.all(keys.map((key) => join(service, slow, key)));
  let haveJoinsEnded = false;
  void joins.then(() => {
    haveJoinsEnded = true;
  });
  const member = await service.request('POST', `/chambers/${quick}/join`, { by });
  const registered = await service.agent();
  expect([member.status, typeof registered.did, haveJoinsEnded]).toEqual([200, 'string', false]);
  expect(performance.now() - startedAt).toBeLessThan(1_500);
  expect((await joins).map(({ status }) => status)).toEqual(Array(8).fill(200));
  expect(performance.now() - startedAt).toBeGreaterThan(2_900);
});
