// The outcome of a chamber has the same bytes in either store.
import { expect, it } from 'vitest';
import { openSqliteStore } from '../../../src/log/sqlite/store.ts';
import { openStore, temporaryPostgres } from '../../kit/postgres.ts';
import { playToSettlement } from '../../kit/settled-chambers.ts';
import { TestService } from '../../kit/test-service.ts';

const { OUTCOMES = '50', OUTCOMES_SEED = '41' } = process.env;

it(`the outcomes of ${OUTCOMES} random chambers are the same on both stores (OUTCOMES, OUTCOMES_SEED=${OUTCOMES_SEED})`, {
  timeout: 600_000,
}, async () => {
  const url = await temporaryPostgres();
  const services = [
    new TestService({ store: openSqliteStore(':memory:') }),
    new TestService({ store: await openStore(url) }),
  ] as const;
  const outcomes = [];
  for (const service of services) {
    const ids = await playToSettlement(service, Number(OUTCOMES), Number(OUTCOMES_SEED));
    outcomes.push(await outcomesOf(service, ids));
  }
  const [one, other] = outcomes;
  // The nonces of signatures differ, and therefore the roots.
  expect(other?.map(withoutRoot)).toEqual(one?.map(withoutRoot));
  const [, postgres] = services;
  await postgres.close();
  const again = new TestService({ store: await openStore(url), clock: postgres.clock });
  const ids = Array.from({ length: Number(OUTCOMES) }, (_, index) => index + 1);
  expect(await outcomesOf(again, ids)).toEqual(other);
});

async function outcomesOf({ app }: TestService, chamberIds: readonly number[]): Promise<readonly string[]> {
  const texts: string[] = [];
  for (const id of chamberIds) texts.push(await (await app.request(`/chambers/${id}/outcome`, {}, {})).text());
  return texts;
}

function withoutRoot(outcome: string): string {
  return outcome.replace(/"merkleRoot":"0x[0-9a-f]{64}"/, '"merkleRoot":""');
}
