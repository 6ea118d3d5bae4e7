// Contract wallets, deployed (EIP-1271) or not yet deployed (ERC-6492), on a real chain.
import { encodeFunctionData, getAddress, type Hex, serializeErc6492Signature } from 'viem';
import { beforeAll, describe, expect, it } from 'vitest';
import { AuditedChain } from '../../src/audit/chain/chain-reader.ts';
import { type Anvil, spawnAnvil } from '../../src/dev-chain/anvil.ts';
import { readCall } from '../../src/relayer/chain-client.ts';
import { openRpc, type Rpc } from '../../src/relayer/rpc.ts';
import { TokenReader } from '../../src/relayer/token-reader.ts';
import { audit, type Line, parse } from '../audit/forge.ts';
import { openChamber } from '../kit/chambers.ts';
import { type Contract, deployContract } from '../kit/contracts.ts';
import type { Signer } from '../kit/signer.ts';
import { atEnd } from '../kit/temporary.ts';
import { registrationOf, TestService, withAgent } from '../kit/test-service.ts';
import { proofBy, retirementBy, walletOf } from '../kit/wallets.ts';
import { type FaultProxy, openFaultProxy } from '../relayer/fault-proxy.ts';

const CHAIN_ID = 31_337;
const [OWNER, OTHER] = [walletOf(0), walletOf(1)];

let anvil: Anvil;
let rpc: Rpc;
let wallet: Contract;
let factory: Contract;

beforeAll(async () => {
  anvil = await spawnAnvil([]);
  rpc = openRpc(anvil.rpcUrl);
  wallet = await deployContract(rpc, 'admission/ContractWallet', OWNER.address);
  factory = await deployContract(rpc, 'admission/WalletFactory');
  return async () => {
    rpc.close();
    await anvil.kill();
  };
});

async function open({
  answerMillisMax = 5_000,
} = {}): Promise<{ service: TestService; proxy: FaultProxy; by: Signer }> {
  const service = new TestService();
  const proxy = await openFaultProxy(anvil.rpcUrl);
  const reader = new TokenReader({ rpcUrl: proxy.url, chainId: CHAIN_ID, answerMillisMax });
  service.forum.useChain(reader);
  atEnd(() => {
    reader.close();
    proxy.close();
  });
  return { service, proxy, by: await service.agent() };
}

async function bodyOf(service: TestService, by: Signer, address: string, owner = OWNER) {
  const { operatorEmail: _, ...content } = registrationOf(by);
  const issuedAt = new Date(service.clock.read()).toISOString();
  return {
    ...content,
    walletAddress: address,
    ...(await proofBy(owner, by.did, { issuedAt, address: getAddress(address) })),
  };
}

async function lastLine(service: TestService, { did }: Signer): Promise<Line> {
  return parse(await service.lines(did)).at(-1) as Line;
}

const BLOCK = {
  chainId: CHAIN_ID,
  blockNumber: expect.any(Number),
  blockHash: expect.stringMatching(/^0x[0-9a-f]{64}$/),
};
/** A contract that returns the magic value of EIP-1271 for any call. */
async function alwaysValidWallet(): Promise<Hex> {
  const address: Hex = `0x${'a1'.repeat(20)}`;
  await rpc.request('anvil_setCode', [address, '0x631626ba7e60e01b60005260206000f3']);
  return address;
}

const SALT: Hex = `0x${'07'.repeat(32)}`;

/** The address at which the factory would deploy OWNER's wallet, and the deploying call. */
async function counterfactual() {
  const abi = [
    {
      type: 'function',
      stateMutability: 'nonpayable',
      inputs: [{ type: 'address' }, { type: 'bytes32' }],
      outputs: [{ type: 'address' }],
    },
  ] as const;
  const call = (name: string) => encodeFunctionData({ abi: [{ ...abi[0], name }], args: [OWNER.address, SALT] });
  const word = await readCall(rpc, { to: factory.address, data: call('addressOf') });
  return { address: `0x${word.slice(-40)}`, data: call('deploy') };
}

describe('a contract wallet', () => {
  it('a contract wallet is proven by EIP-1271, and the line names the block', async () => {
    const { service, by } = await open();
    const body = await bodyOf(service, by, wallet.address);
    await service.must('POST', '/register', { by, body });
    expect(await service.must('GET', '/me', { by })).toMatchObject({ walletProven: true });
    expect(await lastLine(service, by)).toMatchObject({
      payload: { walletProof: { signature: body.walletSignature, ...BLOCK } },
    });
  });

  it('a contract wallet is proven before it is deployed, by ERC-6492', async () => {
    const { service, by } = await open();
    const { address, data } = await counterfactual();
    const { walletSignature: signature, ...body } = await bodyOf(service, by, address);
    const walletSignature = serializeErc6492Signature({ address: factory.address, data, signature });
    await service.must('POST', '/register', { by, body: { ...body, walletSignature } });
    expect(await lastLine(service, by)).toMatchObject({
      payload: { walletProof: { signature: walletSignature, ...BLOCK } },
    });
    expect(await rpc.request('eth_getCode', [address, 'latest'])).toBe('0x');
  });

  it.each([0, 1, 31, 32])(
    'a contract wallet is proven by a signature of %i bytes, as used by wallets that store approvals on the chain',
    async (bytes) => {
      const { service, by } = await open();
      // The contract returns the magic value of EIP-1271 for any call.
      const address = `0x${'a1'.repeat(20)}`;
      await rpc.request('anvil_setCode', [address, '0x631626ba7e60e01b60005260206000f3']);
      const walletSignature = `0x${'5a'.repeat(bytes)}`;
      await service.must('POST', '/register', {
        by,
        body: { ...(await bodyOf(service, by, address)), walletSignature },
      });
      expect(await service.must('GET', '/me', { by })).toMatchObject({ walletProven: true });
      const issuedAt = new Date(service.clock.read()).toISOString();
      await service.must('POST', `/agents/${by.did}/retire`, {
        body: { walletAddress: address, walletSignature, issuedAt },
      });
      expect(await lastLine(service, by)).toMatchObject({
        payload: { walletProof: { signature: walletSignature, ...BLOCK } },
      });
    },
  );

  it('a contract wallet and an address without code are rejected if another signer has signed; the error shows the text to sign', async () => {
    const { service, by } = await open();
    const { address } = await counterfactual();
    for (const [body, problem] of [
      [await bodyOf(service, by, wallet.address, OTHER), `is not by ${wallet.address}`],
      [await bodyOf(service, by, address), `is not by ${address}`],
      [await bodyOf(service, by, factory.address), `is not by ${factory.address}`],
    ] as const) {
      const { status, body: answer } = await service.request('POST', '/register', { by, body });
      expect([status, answer.detail]).toEqual([400, expect.stringContaining(problem)]);
      expect(answer.detail).toContain('Chamber Coordination Service wallet proof\nagent: ');
    }
  });

  it('a contract wallet retires the key, and other callers cause no call to the chain', async () => {
    const { service, by, proxy } = await open();
    await service.must('POST', '/register', { by, body: await bodyOf(service, by, wallet.address) });
    const issuedAt = new Date(service.clock.read()).toISOString();
    const path = `/agents/${by.did}/retire`;
    proxy.requests.length = 0;
    const theirs = await retirementBy(OTHER, by.did, { issuedAt });
    expect(await service.request('POST', path, { body: theirs })).toMatchObject({ status: 400 });
    expect(proxy.requests).toEqual([]);
    const forged = { ...theirs, walletAddress: wallet.address };
    expect(await service.request('POST', path, { body: forged })).toMatchObject({ status: 400 });
    const body = { ...(await retirementBy(OWNER, by.did, { issuedAt })), walletAddress: wallet.address };
    expect(await service.must('POST', path, { body })).toEqual({ eventId: 3 });
    expect(await lastLine(service, by)).toMatchObject({ payload: { by: 'wallet', walletProof: BLOCK } });
    expect(await service.must('POST', path, { body })).toEqual({ eventId: 3 });
  });

  it('a contract wallet delays no other request while the chain is slow; a wallet with a key causes no RPC call', async () => {
    const { service, by, proxy } = await open({ answerMillisMax: 200 });
    await service.must('POST', '/register', { by, body: await bodyOf(service, by, OWNER.address) });
    expect(proxy.requests).toEqual([]);
    const frozen = new TestService();
    const never = { answer: () => new Promise<never>(() => {}) };
    frozen.forum.useChain(never);
    const slow = await frozen.agent();
    void frozen.request('POST', '/register', { by: slow, body: await bodyOf(frozen, slow, wallet.address) });
    // Other requests do not wait for the chain.
    await openChamber(frozen, [await frozen.agent()]);
  });

  it('a contract wallet is not evaluated by an audit of the lines alone', async () => {
    const { service, by } = await open();
    await service.must('POST', '/register', { by, body: await bodyOf(service, by, wallet.address) });
    await openChamber(service, [by]);
    const { ndjson } = await service.log.readPage(by.did, 0, 100);
    const { check } = await audit(`${(await service.lines(1)).join('\n')}\n`, { accounts: ndjson.toString() });
    expect(check('registration')).toMatchObject({
      verdict: 'not evaluated',
      note: expect.stringContaining('only the chain (--rpc) shows'),
    });
  });
});

describe('an audit with a chain', () => {
  const asked = () => new AuditedChain(anvil.rpcUrl, []);

  /** Returns the auditor's verdict on the registration of a member. */
  async function registration(service: TestService, by: Signer, chain = asked()) {
    await openChamber(service, [by]);
    const { ndjson } = await service.log.readPage(by.did, 0, 100);
    const { check } = await audit(`${(await service.lines(1)).join('\n')}\n`, { accounts: ndjson.toString(), chain });
    const { verdict, findings, note } = check('registration');
    return { verdict, sentence: findings[0]?.sentence ?? note };
  }

  it('an audit with a chain verifies an approval stored on the chain, whose signature is empty', async () => {
    const { service, by } = await open();
    const body = { ...(await bodyOf(service, by, await alwaysValidWallet())), walletSignature: '0x' };
    await service.must('POST', '/register', { by, body });
    expect(await registration(service, by)).toMatchObject({ verdict: 'verified' });
  });

  it('an audit with a chain verifies a deployed contract wallet, and one that is not deployed yet', async () => {
    const deployed = await open();
    await deployed.service.must('POST', '/register', {
      by: deployed.by,
      body: await bodyOf(deployed.service, deployed.by, wallet.address),
    });
    expect(await registration(deployed.service, deployed.by)).toMatchObject({ verdict: 'verified' });
    const { service, by } = await open();
    const { address, data } = await counterfactual();
    const { walletSignature: signature, ...body } = await bodyOf(service, by, address);
    const walletSignature = serializeErc6492Signature({ address: factory.address, data, signature });
    await service.must('POST', '/register', { by, body: { ...body, walletSignature } });
    expect(await registration(service, by)).toMatchObject({ verdict: 'verified' });
  });

  it.each([
    ['signature that the contract does not accept', () => wallet.address],
    ['contract that accepts no signature', () => factory.address],
  ])('an audit with a chain finds a %s that a lying service has recorded', async (_what, address) => {
    const { service, by } = await open();
    const block = (await rpc.request('eth_getBlockByNumber', ['latest', false])) as { number: Hex; hash: Hex };
    service.forum.useChain({
      answer: async (question) => {
        const hash = question.kind === 'signature' ? (question.hashes[0] as Hex) : '0x';
        return { chainId: CHAIN_ID, blockNumber: Number(block.number), blockHash: block.hash, hash };
      },
    });
    await service.must('POST', '/register', { by, body: await bodyOf(service, by, address(), OTHER) });
    expect(await registration(service, by)).toEqual({
      verdict: 'broken',
      sentence: expect.stringContaining(`the contract ${address()} does not accept the recorded signature`),
    });
  });

  it.each([
    ['another chain', 'eth_chainId', { kind: 'result', result: '0x1' }, 'serves chain 1'],
    ['no such block', 'eth_getBlockByNumber', { kind: 'result', result: null }, 'is unknown there'],
    [
      'no state of the block',
      'eth_call',
      { kind: 'error', message: 'missing trie node' },
      'does not have the state of block',
    ],
  ] as const)('an audit with a chain is undecided if the RPC has %s', async (_what, faulty, fault, note) => {
    const { service, by, proxy } = await open();
    await service.must('POST', '/register', { by, body: await bodyOf(service, by, wallet.address) });
    proxy.fault = (method) => (method === faulty ? fault : undefined);
    const outcome = await registration(service, by, new AuditedChain(proxy.url, []));
    expect(outcome).toEqual({ verdict: 'undecided', sentence: expect.stringContaining(note) });
  });
});

describe('without a chain', () => {
  it('a contract wallet cannot be proven: 400 with the text to sign', async () => {
    const { service, by } = await withAgent();
    const body = await bodyOf(service, by, wallet.address);
    expect(await service.request('POST', '/register', { by, body })).toMatchObject({ status: 400 });
  });
});
