// Audits a running service that has withheld texts, with and without the original lines.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { toText } from '../../src/audit/report/text.ts';
import { deadlinesFrom } from '../kit/chambers.ts';
import { call, createChamber, newAgent, run } from '../kit/service.ts';
import { Signer } from '../kit/signer.ts';
import { temporaryDatabase, temporaryFolder } from '../kit/temporary.ts';
import { registrationOf } from '../kit/test-service.ts';
import { eventually } from '../kit/until.ts';
import { audit, covered } from './running-audit.ts';

const SECRET = 'Rosebud';
const SLOW = { timeout: 60_000 };

/** Chamber 1 has withheld texts of each kind, chamber 2 has none. `originals` holds all original lines. */
async function withheldService() {
  const list = join(temporaryFolder(), 'withhold');
  writeFileSync(list, '');
  const running = await run({ DATABASE_PATH: temporaryDatabase(), WITHHOLD_FILE: list });
  const by = new Signer();
  await call(running, by, ['POST', '/register', { ...registrationOf(by), label: SECRET }]);
  const { clock } = running;
  const body = { name: SECRET, topic: SECRET, ...deadlinesFrom(clock.read()) };
  const { chamberId: id } = await call(running, by, ['POST', '/chambers', body]);
  await call(running, by, ['POST', `/chambers/${id}/join`]);
  clock.set(Date.parse(body.lobbyDeadline));
  await call(running, by, ['POST', `/chambers/${id}/propose`, { name: SECRET, ticker: 'RAIN', description: SECRET }]);
  clock.set(Date.parse(body.proposalDeadline));
  await call(running, by, ['POST', `/chambers/${id}/debate`, { ideaId: 'idea-1', comment: SECRET }]);
  await createChamber(running, await newAgent(running));
  await covered(running);
  const read = async (path: string) => await (await fetch(`${running.url}${path}`)).text();
  const lines = (await read(`/chambers/${id}/events?limit=100`)) + (await read(`/agents/${by.did}/events`));
  const originals = join(temporaryFolder(), 'originals.ndjson');
  writeFileSync(originals, lines);
  writeFileSync(list, `1:1 law\n1:3 law\n1:4 law\n${by.did}:1 law\n`);
  running.service.reloadLists();
  const { withholding } = running.service.forum.store;
  // Withholding the registration also withholds the label of the join.
  await eventually(() => expect(withholding.through).toBe(5), 10_000);
  return { running, by, originals };
}

it(
  'a service with withheld texts is sound with the original lines, although its views lack the texts',
  SLOW,
  async () => {
    const { running, originals } = await withheldService();
    for (const whole of [false, true]) {
      const { exitCode, report, checkOf } = await audit(running, { originals, whole });
      expect([exitCode, report.sentence]).toEqual([0, 'Sound.']);
      for (const check of ['views', 'withheld', 'signature']) expect(checkOf(check)?.verdict, check).toBe('verified');
      expect(report.chambers.map(({ withheldEvents }) => withheldEvents)).toEqual([[], []]);
    }
  },
);

it('an audit of a whole service names the withheld events of each chamber and account', SLOW, async () => {
  const { running, by } = await withheldService();
  const texts = `the texts of 5 events, withheld by the service (chamber 1: 1, 2, 3, 4; account of ${by.did}: 1)`;
  const { exitCode, report } = await audit(running);
  expect([exitCode, report.sentence]).toEqual([0, `Sound, but for ${texts}.`]);
  expect(report.chambers.find(({ chamberId }) => chamberId === 1)).toMatchObject({
    sentence: `Sound, but for the texts of 5 events, withheld by the service (1, 2, 3, 4; account of ${by.did}: 1).`,
    withheldEvents: [1, 2, 3, 4],
    withheldAccountEvents: [{ did: by.did, eventId: 1 }],
  });
  expect(toText(report, false)).toMatch(/^ {17}texts withheld: 1, 2, 3, 4; account of$/m);
  const { exitCode: undecided, report: whole } = await audit(running, { whole: true });
  expect([undecided, whole.verdict]).toEqual([4, 'undecided']);
  expect(whole.sentence).toContain(`withheld by the service (1, 2, 3, 4; account of ${by.did}: 1)`);
});
