// Two nodes with different clocks: a line that follows the other node's line is decided by its own `ts`, because auditors know no
// other time.
import { expect, it } from 'vitest';
import { deadlinesFrom } from '../kit/chambers.ts';
import { HOUR, START, TestClock } from '../kit/clock.ts';
import type { Signer } from '../kit/signer.ts';
import { PUBLIC_URL, registrationOf, TestService } from '../kit/test-service.ts';
import { proofBy, retirementBy, walletOf } from '../kit/wallets.ts';
import { MemoryDatabase } from './simulation/memory-database.ts';
import { openMemoryStore } from './simulation/memory-store.ts';

/** Half a second past the hour, by the clock that is behind. */
const NOW = START + 2 * HOUR + 500;
const AGE_SECONDS_MAX = 300;

function nodes() {
  const database = new MemoryDatabase();
  const open = (aheadMillis: number) => {
    const clock = new TestClock();
    clock.advance(aheadMillis);
    return new TestService({ store: openMemoryStore(database), clock });
  };
  return { behind: open(0), ahead: open(1_000) };
}

/** The only agent in a chamber in DEBATE; the node whose clock is ahead has written the last line. */
async function inDebate() {
  const { behind, ahead } = nodes();
  const by = await behind.agent();
  const { chamberId } = await behind.must('POST', '/chambers', { by, body: { name: 'Test', ...deadlinesFrom(START) } });
  await behind.must('POST', `/chambers/${chamberId}/join`, { by });
  behind.clock.set(NOW);
  ahead.clock.set(NOW + 1_000);
  const path = `/chambers/${chamberId}/debate`;
  await ahead.must('POST', path, { by, body: { comment: 'one' } });
  return { behind, by, path };
}

function debate({ behind, by, path }: Awaited<ReturnType<typeof inDebate>>, created: number, expires?: number) {
  const body = JSON.stringify({ comment: 'two' });
  const params = { method: 'POST', url: PUBLIC_URL + path, body, created, ...(expires !== undefined && { expires }) };
  const headers = { 'content-type': 'application/json', ...by.sign(params) };
  return behind.send({ method: 'POST', path, body, headers });
}

it('a signature that has expired by the time of the previous line is rejected', async () => {
  const chamber = await inDebate();
  const seconds = Math.floor(NOW / 1000);
  expect(await debate(chamber, seconds, seconds + 1)).toMatchObject({
    status: 401,
    body: { error: 'FORUM_ERR_SIGNATURE', detail: expect.stringContaining('has expired') },
  });
  expect(await debate(chamber, seconds, seconds + 2)).toMatchObject({ status: 200 });
});

it('a signature that is too old by the time of the previous line is rejected', async () => {
  const chamber = await inDebate();
  const oldest = Math.ceil(NOW / 1000) - AGE_SECONDS_MAX;
  expect(await debate(chamber, oldest)).toMatchObject({ status: 401, body: { error: 'FORUM_ERR_SIGNATURE' } });
  expect(await debate(chamber, oldest + 1)).toMatchObject({ status: 200 });
});

/** An agent with a proven wallet; the node whose clock is ahead was the last to change its account. */
async function withWallet() {
  const { behind, ahead } = nodes();
  const wallet = walletOf(0);
  const by = await behind.agent({ walletAddress: wallet.address });
  behind.clock.set(NOW);
  ahead.clock.set(NOW + 1_000);
  const proof = await proofBy(wallet, by.did, { issuedAt: new Date(NOW).toISOString() });
  await ahead.must('POST', '/register', { by, body: { ...contentOf(by), walletAddress: wallet.address, ...proof } });
  return { behind, by, wallet };
}

function contentOf(by: Signer) {
  const { operatorEmail: _, ...content } = registrationOf(by);
  return content;
}

const tooOld = { issuedAt: new Date(NOW - AGE_SECONDS_MAX * 1000).toISOString() };
const refused = { status: 400, body: { detail: expect.stringContaining('issuedAt is 301 s old') } };

it('a wallet proof that is too old by the time of the previous line is rejected', async () => {
  const { behind, by } = await withWallet();
  const other = walletOf(1);
  const proof = await proofBy(other, by.did, tooOld);
  const body = { ...contentOf(by), walletAddress: other.address, ...proof };
  expect(await behind.request('POST', '/register', { by, body })).toMatchObject(refused);
});

it('a wallet’s retirement that is too old by the time of the previous line is rejected', async () => {
  const { behind, by, wallet } = await withWallet();
  const body = await retirementBy(wallet, by.did, tooOld);
  expect(await behind.request('POST', `/agents/${by.did}/retire`, { body })).toMatchObject(refused);
});
