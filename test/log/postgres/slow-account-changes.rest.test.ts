// A slow append of an account change, and moves of its agent at another node. Auditors allow 5 s between the `ts` of the change
// and that of a later move that was decided without the change.
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { audit } from '../../audit/forge.ts';
import { enterPhase, openChamber } from '../../kit/chambers.ts';
import { TestClock } from '../../kit/clock.ts';
import { connect, execute, holdTable, openStore, temporaryPostgres, waitersFor } from '../../kit/postgres.ts';
import { TestService } from '../../kit/test-service.ts';
import { eventually, until } from '../../kit/until.ts';

/** Longer than auditors allow. */
const LATE_MS = 6_000;
/** Longer than a change may wait before it is written, and shorter than a statement may take. */
const HELD_MS = 2_500;
/** The advisory lock for which commits wait. */
const COMMIT = 4_711;
const WAITING = `SELECT FROM pg_locks WHERE locktype = 'advisory' AND objid = ${COMMIT} AND NOT granted`;

/** Makes commits with matching lines wait until the lock is released. */
async function holdCommits(url: string, condition: string) {
  await execute(
    url,
    `CREATE FUNCTION hold_commit() RETURNS trigger LANGUAGE plpgsql AS
       $$ BEGIN PERFORM pg_advisory_xact_lock(${COMMIT}); RETURN NULL; END $$;
     CREATE CONSTRAINT TRIGGER hold_commit AFTER INSERT ON events DEFERRABLE INITIALLY DEFERRED
       FOR EACH ROW WHEN (${condition}) EXECUTE FUNCTION hold_commit()`,
  );
  const holder = await connect(url);
  await holder.query(`SELECT pg_advisory_lock(${COMMIT})`);
  return {
    oneWaits: () => until(async () => (await execute(url, WAITING)).length > 0),
    release: () => holder.query(`SELECT pg_advisory_unlock(${COMMIT})`),
  };
}

/** Two nodes with one clock, and an agent in the DEBATE of a chamber that both have read. */
async function inDebate() {
  const url = await temporaryPostgres();
  const clock = new TestClock();
  const [one, other] = [
    new TestService({ store: await openStore(url), clock }),
    new TestService({ store: await openStore(url), clock }),
  ];
  const by = await one.agent();
  const chamberId = await openChamber(one, [by]);
  await enterPhase(one, chamberId, 'DEBATE');
  const path = `/chambers/${chamberId}/debate`;
  await other.must('POST', path, { by, body: { comment: 'one' } });
  const lastTs = async () => {
    const { ndjson } = await one.log.readPage(by.did, 0, 100);
    return Date.parse(JSON.parse(ndjson.toString().trimEnd().split('\n').at(-1) ?? '').ts);
  };
  const registration = async () => {
    const { ndjson } = await one.log.readPage(by.did, 0, 100);
    const { check } = await audit(`${(await one.lines(chamberId)).join('\n')}\n`, { accounts: ndjson.toString() });
    return check('registration');
  };
  return { url, clock, one, other, by, path, lastTs, registration };
}

it('no move of an agent is accepted while its retirement waits for the commit', async () => {
  const { url, clock, one, other, by, path, registration } = await inDebate();
  const { oneWaits, release } = await holdCommits(url, "new.stream LIKE 'did:%'");
  const retired = one.request('POST', '/me/retire', { by, body: {} });
  await oneWaits();
  clock.advance(LATE_MS);
  const move = other.prepare('POST', path, { by, body: { comment: 'two' } });
  expect(await other.send(move)).toMatchObject({ status: 503, body: { error: 'FORUM_ERR_UNAVAILABLE' } });
  await release();
  expect(await retired).toMatchObject({ status: 200 });
  expect(await other.send(move)).toMatchObject({ status: 403, body: { error: 'FORUM_ERR_RETIRED' } });
  expect(await registration()).toMatchObject({ findings: [] });
});

it('an account change that waits too long before it is written is decided again, with a later time', async () => {
  const { url, clock, one, by, lastTs } = await inDebate();
  const holder = await holdTable(url, 'events');
  const changed = one.request('PUT', '/personality', { by, body: { patch: { style: 'dry' } } });
  await eventually(async () => expect(await waitersFor(url, 'events')).toBeGreaterThan(0));
  clock.advance(LATE_MS);
  await sleep(HELD_MS);
  await holder.query('COMMIT');
  expect(await changed).toMatchObject({ status: 200 });
  expect(await lastTs()).toBe(clock.read());
});

it('an account change that was decided during a slow append is decided again', async () => {
  const { url, clock, one, by, path, lastTs } = await inDebate();
  const { oneWaits, release } = await holdCommits(url, "new.stream NOT LIKE 'did:%'");
  const move = one.request('POST', path, { by, body: { comment: 'two' } });
  await oneWaits();
  const changed = one.request('PUT', '/personality', { by, body: { patch: { style: 'dry' } } });
  await sleep(HELD_MS);
  clock.advance(LATE_MS);
  await release();
  expect(await Promise.all([move, changed])).toMatchObject([{ status: 200 }, { status: 200 }]);
  expect(await lastTs()).toBe(clock.read());
});
