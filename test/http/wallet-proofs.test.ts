// Wallet proofs (POST /register with a wallet's signature): valid, missing, wrong, by another wallet, replayed.
import { secp256k1 } from '@noble/curves/secp256k1.js';
import { describe, expect, it } from 'vitest';
import { Signer } from '../kit/signer.ts';
import { PUBLIC_URL, registrationOf, TestService, withAgent } from '../kit/test-service.ts';
import { agentWith, type Proof, proofBy, provenRegistration, walletOf } from '../kit/wallets.ts';

const [WALLET, OTHER] = [walletOf(0), walletOf(1)];

async function open() {
  const service = new TestService();
  const by = await service.agent({ walletAddress: WALLET.address });
  const body = await provenRegistration(service, by, WALLET);
  return { service, by, body };
}

async function linesOf(service: TestService, { did }: Signer) {
  return (await service.lines(did)).map((line) => JSON.parse(line));
}

const isProven = async (service: TestService, by: Signer) => {
  const { walletProven } = await service.must('GET', '/me', { by });
  expect((await service.must('GET', `/agents/${by.did}`)).walletProven).toBe(walletProven);
  return walletProven;
};

describe('a proof', () => {
  it('a proof is stored in full in the account line, and shown', async () => {
    const { service, by, body } = await open();
    expect(await isProven(service, by)).toBe(false);
    await service.must('POST', '/register', { by, body });
    expect(await isProven(service, by)).toBe(true);
    const [, { payload, request }] = await linesOf(service, by);
    const { walletSignature: signature, issuedAt } = body;
    expect(payload).toMatchObject({ walletProof: { signature, issuedAt, service: PUBLIC_URL } });
    expect(request.body).toBe(JSON.stringify(body));
  });

  it('a proof may have an address in any case, a time with an offset, and any origin of the service', async () => {
    const settings = { PUBLIC_URL: `${PUBLIC_URL},https://other.test/api` };
    const { service, by } = await withAgent({ settings });
    const issuedAt = new Date(service.clock.read() + 3_600_000).toISOString().replace('Z', '999+01:00');
    const proof = await proofBy(WALLET, by.did, { service: 'https://other.test', issuedAt });
    const { operatorEmail: _, ...content } = registrationOf(by);
    const body = { ...content, walletAddress: WALLET.address.toLowerCase(), ...proof };
    await service.must('POST', '/register', { by, body });
    expect((await linesOf(service, by))[1].payload.walletProof.service).toBe('https://other.test');
  });

  it('a proof is not valid for another service on the same origin, unless it names only the origin', async () => {
    const [one, other] = ['a', 'b'].map(
      (path) => new TestService({ settings: { PUBLIC_URL: `${PUBLIC_URL}/${path}` } }),
    );
    const outcomes: number[] = [];
    for (const name of [`${PUBLIC_URL}/a`, PUBLIC_URL]) {
      for (const service of [one, other] as TestService[]) {
        const by = await service.agent({ walletAddress: WALLET.address });
        const issuedAt = new Date(service.clock.read()).toISOString();
        const { operatorEmail: _, ...content } = registrationOf(by);
        const proof = await proofBy(WALLET, by.did, { service: name, issuedAt });
        const body = { ...content, walletAddress: WALLET.address, ...proof };
        outcomes.push((await service.request('POST', '/register', { by, body })).status);
      }
    }
    expect(outcomes).toEqual([200, 400, 200, 200]);
  });

  it('a proof stays valid for the same wallet, and is dropped for a different wallet without a proof', async () => {
    const { service, by, body } = await open();
    const { walletSignature: _, issuedAt: __, ...plain } = body;
    const provenAfter = async (next: object) => {
      service.clock.advance(1_000);
      await service.must('POST', '/register', { by, body: next });
      return isProven(service, by);
    };
    expect(await provenAfter(body)).toBe(true);
    expect(await provenAfter({ ...plain, personality: { style: 'dry' } })).toBe(true);
    expect(await provenAfter({ ...plain, walletAddress: OTHER.address })).toBe(false);
    expect(await provenAfter(plain)).toBe(false);
    expect(await provenAfter(await provenRegistration(service, by, OTHER))).toBe(true);
    const { state } = (await service.forum.account(by.did)) ?? {};
    expect(state?.provenWallets).toEqual([WALLET, OTHER].map(({ address }) => address.toLowerCase()));
  });

  it('a proof must be valid even if the wallet is already proven, and then adds no line', async () => {
    const { service, by, body } = await open();
    await service.must('POST', '/register', { by, body });
    service.clock.advance(1_000);
    const again = await provenRegistration(service, by, WALLET);
    await service.must('POST', '/register', { by, body: again });
    const wrong = { ...again, walletSignature: (await provenRegistration(service, by, OTHER)).walletSignature };
    expect(await service.request('POST', '/register', { by, body: wrong })).toMatchObject({ status: 400 });
    expect(await linesOf(service, by)).toHaveLength(2);
  });

  it('a proof gets its first response when it is sent again, at any age', async () => {
    const { service, by, body } = await open();
    const request = service.prepare('POST', '/register', { by, body });
    const first = await service.send(request);
    service.clock.advance(86_400_000 * 2);
    expect((await service.send(request)).body).toEqual(first.body);
    expect(await linesOf(service, by)).toHaveLength(2);
  });

  it('a proof is recorded in the join, together with the label', async () => {
    const service = new TestService();
    const by = await service.agent({ label: 'Ann' });
    const body = { ...(await provenRegistration(service, by, WALLET)), label: 'Ann' };
    await service.must('POST', '/register', { by, body });
    const deadlines = ['lobby', 'proposal', 'debate', 'allocateCommit', 'allocateReveal'].map((name, hour) => [
      `${name}Deadline`,
      new Date(service.clock.read() + (hour + 1) * 3_600_000).toISOString(),
    ]);
    await service.must('POST', '/chambers', { by, body: { name: 'C', ...Object.fromEntries(deadlines) } });
    await service.must('POST', '/chambers/1/join', { by });
    expect((await service.events(1))[1]).toMatchObject({
      type: 'chamber.joined',
      payload: { turnOrder: 0, walletAddress: WALLET.address, walletProven: true, label: 'Ann', accountEventId: 2 },
    });
  });
});

/** Returns the signature with the other valid s, which lenient verifiers accept. */
function withHighS(signature: string): string {
  const { n } = secp256k1.CURVE;
  const s = (n - BigInt(`0x${signature.slice(66, 130)}`)).toString(16).padStart(64, '0');
  return `${signature.slice(0, 66)}${s}${signature.endsWith('1b') ? '1c' : '1b'}`;
}

const changed = (change: (signature: string) => string) => async (_: TestService, __: Signer, proof: Proof) => ({
  ...proof,
  walletSignature: change(proof.walletSignature),
});

type Change = (service: TestService, by: Signer, proof: Proof) => Promise<object>;

const WRONG: readonly (readonly [title: string, change: Change, problem: string])[] = [
  ['a high s', changed(withHighS), 'has an s in the upper half'],
  ['v 29', changed((signature) => `${signature.slice(0, -2)}1d`), 'has v 29'],
  ['v 0', changed((signature) => `${signature.slice(0, -2)}00`), 'has v 0'],
  ['64 bytes (EIP-2098)', changed((signature) => signature.slice(0, -2)), 'has 64 bytes'],
  ['no bytes', changed(() => '0x'), 'has 0 bytes'],
  ['r that is not a point', changed((signature) => `0x${'00'.repeat(32)}${signature.slice(66)}`), 'is not a point'],
  [
    'another wallet',
    async (_, by, { issuedAt }) => proofBy(OTHER, by.did, { issuedAt, address: WALLET.address }),
    `is not by ${WALLET.address}`,
  ],
  ['another agent', async (_, __, { issuedAt }) => proofBy(WALLET, new Signer().did, { issuedAt }), 'is not by'],
  [
    'another service',
    async (_, by, { issuedAt }) => proofBy(WALLET, by.did, { issuedAt, service: 'https://evil.test' }),
    'is not by',
  ],
  [
    'a time other than the one sent',
    async (_, __, proof) => ({ ...proof, issuedAt: proof.issuedAt.replace('Z', '+00:00') }),
    'is not by',
  ],
  [
    'an address without its checksum in the text',
    async (_, by, { issuedAt }) => proofBy(WALLET, by.did, { issuedAt, address: WALLET.address.toLowerCase() }),
    'is not by',
  ],
];

const AGES: readonly (readonly [title: string, seconds: number, problem: string | undefined])[] = [
  ['301 s old', -301, 'issuedAt is 301 s old, but at most 300 s are accepted'],
  ['300 s old', -300, undefined],
  ['60 s ahead', 60, undefined],
  ['61 s ahead', 61, 'issuedAt is 61 s ahead, but at most 60 s are accepted'],
];

describe('an invalid wallet proof', () => {
  const textOf = ({ did }: Signer, issuedAt: string) =>
    `Chamber Coordination Service wallet proof\nagent: ${did}\nwallet: ${WALLET.address}\nservice: ${PUBLIC_URL}\nissued: ${issuedAt}`;

  it.each(WRONG)('POST /register rejects a wallet signature with, by or for %s', async (_title, change, problem) => {
    const { service, by, body } = await open();
    const sent = { ...body, ...(await change(service, by, body)) };
    const { status, body: answer } = await service.request('POST', '/register', { by, body: sent });
    expect([status, answer.error]).toEqual([400, 'FORUM_ERR_VALIDATION']);
    expect(answer.detail).toContain(`walletSignature: ${problem}`);
    expect(answer.detail).toContain(textOf(by, sent.issuedAt));
    expect(await linesOf(service, by)).toHaveLength(1);
  });

  it.each(AGES)(
    'POST /register rejects a proof that is too old or from the future: %s',
    async (_title, seconds, problem) => {
      const { service, by, body } = await open();
      const issuedAt = new Date(service.clock.read() + seconds * 1_000).toISOString();
      const sent = { ...body, ...(await proofBy(WALLET, by.did, { issuedAt })) };
      const { status, body: answer } = await service.request('POST', '/register', { by, body: sent });
      expect(status).toBe(problem === undefined ? 200 : 400);
      if (problem !== undefined) expect(answer.detail).toContain(problem);
      if (problem !== undefined) expect(answer.detail).toContain(textOf(by, issuedAt));
    },
  );

  it.each([
    'unsigned',
    'unsigned, without an e-mail address',
    'with an e-mail address',
    'of a new key',
    'of a new key, without an e-mail address',
    'of a new key, unsigned and without an e-mail address',
  ])('POST /register rejects a proof in a registration %s, and says how to prove a wallet', async (what) => {
    const { service, by, body } = await open();
    const email = what.includes('without an') ? {} : { operatorEmail: 'op@example.org' };
    const newcomer = new Signer();
    const key = what.includes('new') ? newcomer : by;
    const proof = key === by ? body : await provenRegistration(service, newcomer, WALLET);
    const isSigned = !what.includes('unsigned');
    const sent = { ...(isSigned && { by: key }), body: { ...proof, ...email } };
    const { status, body: answer } = await service.request('POST', '/register', sent);
    expect(status).toBe(400);
    expect(answer.detail).toContain(
      'walletSignature: is accepted once the key is registered: register with operatorEmail, without walletSignature and issuedAt; then again with them, signed by the key and without operatorEmail',
    );
    expect(answer.detail).toContain(textOf(key, proof.issuedAt));
  });

  it('POST /register accepts the proof of an agent that follows the error text', async () => {
    const service = new TestService();
    const by = new Signer();
    const proven = await provenRegistration(service, by, WALLET);
    expect(await service.request('POST', '/register', { by, body: proven })).toMatchObject({ status: 400 });
    const { walletSignature: _, issuedAt: __, ...plain } = proven;
    await service.must('POST', '/register', { body: { ...plain, operatorEmail: 'op@example.org' } });
    await service.must('POST', '/register', { by, body: proven });
    expect(await isProven(service, by)).toBe(true);
  });

  it('POST /register names a proof without its time, a time without a proof, more than 8 KiB, and non-hex', async () => {
    const { service, by, body } = await open();
    const { walletSignature, issuedAt, ...plain } = body;
    for (const [more, detail] of [
      [{ walletSignature }, 'issuedAt: is required with walletSignature'],
      [{ issuedAt }, 'walletSignature: is required with issuedAt'],
      [{ issuedAt, walletSignature: `0x${'00'.repeat(8_193)}` }, 'walletSignature: must have at most 8192 bytes'],
      [{ issuedAt, walletSignature: 'abc' }, 'walletSignature: must be 0x and hex digits'],
      [{ issuedAt: '2030-01-01', walletSignature }, 'issuedAt: must be an RFC 3339 date-time'],
    ] as const) {
      const answer = await service.request('POST', '/register', { by, body: { ...plain, ...more } });
      expect(answer).toMatchObject({ status: 400, body: { detail: expect.stringContaining(detail) } });
    }
  });
});

describe('only the holder of a key', () => {
  it('only the holder of a key can bind a wallet to the key: a registration by another key is rejected', async () => {
    const { service, by, body } = await open();
    await service.must('POST', '/register', { by, body });
    const theirs = await provenRegistration(service, by, OTHER);
    const stranger = await service.agent();
    for (const call of [{ body: theirs }, { body: theirs, by: stranger }]) {
      expect((await service.request('POST', '/register', call)).status).toBeGreaterThanOrEqual(400);
    }
    expect(await isProven(service, by)).toBe(true);
    expect((await service.must('GET', '/me', { by })).walletAddress).toBe(WALLET.address);
  });

  it('only the holder of a key can use the proof for the key: the same proof is rejected for another agent', async () => {
    const service = new TestService();
    const by = await agentWith(service, WALLET);
    const [, { payload }] = await linesOf(service, by);
    const other = await service.agent();
    const { operatorEmail: _, ...content } = registrationOf(other);
    const { signature: walletSignature, issuedAt } = payload.walletProof;
    const body = { ...content, walletAddress: WALLET.address, walletSignature, issuedAt };
    expect(await service.request('POST', '/register', { by: other, body })).toMatchObject({ status: 400 });
    expect(await isProven(service, other)).toBe(false);
  });
});
