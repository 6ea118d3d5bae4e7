// Proofs for light readers: every verifier, including OpenZeppelin's on a chain, accepts valid proofs and rejects invalid ones.
import { readFileSync } from 'node:fs';
import { type Abi, createPublicClient, createWalletClient, type Hex, http } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { anvil } from 'viem/chains';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { leafHash } from '../../src/crypto/merkle.ts';
import { verifyConsistency, verifyInclusion } from '../../src/crypto/merkle-proof.ts';
import { type Anvil, spawnAnvil } from '../../src/dev-chain/anvil.ts';
import { fromHex, toHex } from '../../src/vocabulary/values.ts';
import { enterPhase, openChamber } from '../kit/chambers.ts';
import { refusal, TestService } from '../kit/test-service.ts';

interface Proof {
  readonly eventId: number;
  readonly leaf: Hex;
  readonly proof: readonly Hex[];
  readonly root: Hex;
  readonly eventCount: number;
}

/** Opens a chamber with the given number of moves: its creation and joins. */
async function chamberOf(moves: number) {
  const service = new TestService();
  const members = [];
  for (let count = 1; count < moves; count++) members.push(await service.agent());
  const chamberId = await openChamber(service, members);
  const get = (path: string) => service.must('GET', `/chambers/${chamberId}${path}`);
  return { service, chamberId, get, proofOf: (eventId: number): Promise<Proof> => get(`/events/${eventId}/proof`) };
}

const holds = ({ eventId, leaf, proof, root, eventCount: size }: Proof) =>
  verifyInclusion({ leaf: fromHex(leaf), eventId, size, proof: proof.map(fromHex), root: fromHex(root) });

describe('GET /chambers/:id/events/:eventId/proof', () => {
  test.each([2, 3, 7, 8, 11])(
    'GET /chambers/:id/events/:eventId/proof proves every event of a chamber of %i moves',
    async (moves) => {
      const { service, chamberId, get, proofOf } = await chamberOf(moves);
      const { root } = await get('/merkle-preview');
      const lines = await service.lines(chamberId);
      for (const [index, line] of lines.entries()) {
        const proof = await proofOf(index + 1);
        expect(proof).toMatchObject({
          eventId: index + 1,
          leaf: toHex(leafHash(Buffer.from(line))),
          root,
          eventCount: moves,
        });
        expect(holds(proof)).toBe(true);
        expect(holds({ ...proof, leaf: root })).toBe(false);
        expect(holds({ ...proof, proof: proof.proof.slice(1) })).toBe(false);
      }
    },
  );

  test('GET /chambers/:id/events/:eventId/proof is 404 outside the tree', async () => {
    const { service, chamberId } = await chamberOf(3);
    await enterPhase(service, chamberId, 'COMMITTED');
    for (const path of [
      '1/events/4',
      '1/events/5',
      '1/events/0',
      '1/events/abc',
      '1/events/01',
      '2/events/1',
      'x/events/1',
    ]) {
      const { status, body } = await service.request('GET', `/chambers/${path}/proof`);
      expect({ path, status, error: body.error }).toEqual({ path, status: 404, error: 'FORUM_ERR_NOT_FOUND' });
    }
  });

  test('GET /chambers/:id/events/:eventId/proof has the Log-Id', async () => {
    const { service } = await chamberOf(2);
    const { headers } = await service.request('GET', '/chambers/1/events/1/proof');
    expect(headers.get('log-id')).toBe(service.log.logId);
  });
});

describe('GET /chambers/:id/consistency', () => {
  const moves = 9;
  const sizes = Array.from({ length: moves }, (_, index) => index + 1);

  test('GET /chambers/:id/consistency proves every earlier tree to be a prefix of every later one, and no other', async () => {
    const { get } = await chamberOf(moves);
    const last = await get(`/consistency?from=${moves}&to=${moves}`);
    for (const to of sizes) {
      for (const from of sizes.slice(0, to)) {
        const { fromRoot, toRoot, proof } = await get(`/consistency?from=${from}&to=${to}`);
        const claim = { from, to, fromRoot: fromHex(fromRoot), toRoot: fromHex(toRoot), proof: proof.map(fromHex) };
        expect(verifyConsistency(claim), `${from} to ${to}`).toBe(true);
        if (from === to) continue;
        expect(verifyConsistency({ ...claim, fromRoot: fromHex(toRoot) })).toBe(false);
        expect(verifyConsistency({ ...claim, toRoot: fromHex(fromRoot) })).toBe(false);
        expect(verifyConsistency({ ...claim, proof: claim.proof.slice(1) })).toBe(false);
        expect(verifyConsistency({ ...claim, proof: [...claim.proof, fromHex(last.toRoot)] })).toBe(false);
      }
    }
  });

  test.each([
    '',
    '?from=1',
    '?to=2',
    '?from=0&to=2',
    '?from=3&to=2',
    '?from=1&to=10',
    '?from=a&to=2',
    '?from=1.5&to=2',
    '?from=-1&to=2',
  ])('GET /chambers/:id/consistency rejects %j', async (query) => {
    const { service } = await chamberOf(moves);
    expect(await service.request('GET', `/chambers/1/consistency${query}`)).toMatchObject(
      refusal(400, 'FORUM_ERR_VALIDATION', /^(from|to): /),
    );
  });

  test('GET /chambers/:id/consistency is 404 for a missing chamber', async () => {
    const { service } = await chamberOf(2);
    expect(await service.request('GET', '/chambers/2/consistency?from=1&to=1')).toMatchObject({ status: 404 });
  });
});

describe('OpenZeppelin’s MerkleProof on a chain', () => {
  /** The first account of every Anvil instance. */
  const account = privateKeyToAccount('0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80');
  const artefact = JSON.parse(
    readFileSync(new URL('../../fixtures/contracts/MerkleProofCheck.json', import.meta.url), 'utf8'),
  ) as { readonly abi: Abi; readonly bytecode: Hex };
  let node: Anvil;
  let isOnChain: (proof: readonly Hex[], root: Hex, leaf: Hex) => Promise<unknown>;

  beforeAll(async () => {
    node = await spawnAnvil([]);
    const transport = http(node.rpcUrl);
    const client = createPublicClient({ chain: anvil, transport, pollingInterval: 20 });
    const hash = await createWalletClient({ account, chain: anvil, transport }).deployContract(artefact);
    const { contractAddress } = await client.waitForTransactionReceipt({ hash });
    if (!contractAddress) throw new Error('not deployed');
    isOnChain = (...args) =>
      client.readContract({ address: contractAddress, abi: artefact.abi, functionName: 'verify', args });
  });
  afterAll(() => node.kill());

  test.each([2, 5, 8])(
    'OpenZeppelin’s MerkleProof on a chain accepts the proofs of a chamber of %i moves, and rejects wrong ones',
    async (moves) => {
      const { proofOf } = await chamberOf(moves);
      for (let eventId = 1; eventId <= moves; eventId++) {
        const { proof, root, leaf } = await proofOf(eventId);
        expect(await isOnChain(proof, root, leaf)).toBe(true);
        expect(await isOnChain(proof, root, root)).toBe(false);
        expect(await isOnChain(proof.slice(1), root, leaf)).toBe(false);
      }
    },
  );
});
