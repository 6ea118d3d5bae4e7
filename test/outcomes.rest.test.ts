// The outcome of a chamber has the same bytes for all readers: the service before and after a restart and for chambers that it
// has to fold again, the client that folds the lines, and the auditor.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { auditFile } from '../src/audit/audit.ts';
import { type ChamberEvent, evolveChamber, ForumClient, outcomeOf, outcomeText } from '../src/client/index.ts';
import { playToSettlement } from './kit/settled-chambers.ts';
import { temporaryDatabase, temporaryFolder } from './kit/temporary.ts';
import { TestService } from './kit/test-service.ts';

const { OUTCOMES = '100', OUTCOMES_SEED = '40' } = process.env;
/** Settings with so little memory that every chamber is folded from its lines each time. */
const EVICTING = { STATE_CACHE_BYTES_MAX: '5000', RESPONSE_CACHE_BYTES_MAX: '65536' };

it(`service, client and auditor compute the same bytes for the outcomes of ${OUTCOMES} random chambers (OUTCOMES, OUTCOMES_SEED=${OUTCOMES_SEED})`, {
  timeout: 600_000,
}, async () => {
  const path = temporaryDatabase();
  const service = new TestService({ path });
  const chamberIds = await playToSettlement(service, Number(OUTCOMES), Number(OUTCOMES_SEED));
  const first = await outcomesOf(service, chamberIds);
  const kinds = {
    failures: 0,
    tokens: 0,
    ties: 0,
    unrevealed: 0,
    empty: 0,
    paced: 0,
    amended: 0,
    withdrawn: 0,
    withoutCompany: 0,
  };
  const folder = temporaryFolder();
  for (const [index, chamberId] of chamberIds.entries()) {
    const lines = await service.lines(chamberId);
    const state = lines.map((line) => JSON.parse(line) as ChamberEvent).reduce(evolveChamber, null);
    const outcome = state && outcomeOf(state, service.clock.read());
    if (state === null || outcome === null || !('view' in outcome))
      throw new Error(`chamber ${chamberId} has not ended`);
    expect(outcomeText(outcome.view)).toBe(first[index]);
    const file = join(folder, `${chamberId}.ndjson`);
    writeFileSync(file, lines.map((line) => `${line}\n`).join(''));
    const audited = await auditFile(file, { asksOutcome: true });
    expect(audited.causes).toEqual([]);
    expect(audited.outcome).toEqual(outcome);
    const { ideas, revealed, members, quorate } = outcome.view;
    kinds.failures += ideas.filter(({ failure }) => failure !== null).length;
    kinds.tokens += ideas.filter(({ tokenAddress }) => tokenAddress !== null).length;
    kinds.ties += new Set(ideas.map(({ totalBps }) => totalBps)).size < ideas.length ? 1 : 0;
    kinds.unrevealed += revealed === 0 ? 1 : 0;
    kinds.empty += members.length === 0 ? 1 : 0;
    kinds.paced += state.rounds === null ? 0 : 1;
    kinds.amended += ideas.filter(({ version, graduated }) => version > 1 && graduated).length;
    kinds.withdrawn += ideas.filter(({ withdrawn }) => withdrawn).length;
    kinds.withoutCompany += quorate === false ? 1 : 0;
  }
  for (const count of Object.values(kinds)) expect(count, JSON.stringify(kinds)).toBeGreaterThan(0);
  await service.close();
  const again = new TestService({ path, clock: service.clock, settings: EVICTING });
  expect(await outcomesOf(again, chamberIds)).toEqual(first);
  const client = new ForumClient('http://127.0.0.1', { fetch: async (url) => again.app.request(url, {}, {}) });
  for (const [index, chamberId] of chamberIds.entries()) {
    expect(outcomeText(await client.outcome(chamberId))).toBe(first[index]);
  }
});

async function outcomesOf(service: TestService, chamberIds: readonly number[]): Promise<readonly string[]> {
  const texts: string[] = [];
  for (const id of chamberIds) texts.push(await (await service.app.request(`/chambers/${id}/outcome`, {}, {})).text());
  return texts;
}
