// A lease among nodes: one node holds it at a time, and the appends of a former holder are rejected.
import { createServer } from 'node:net';
import { join } from 'node:path';
import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import { freePort } from '../../../src/demo/free-port.ts';
import { DamagedStreams } from '../../../src/log/damage.ts';
import { ALL_CHAMBERS, type LogEntry } from '../../../src/log/log.ts';
import { Appender } from '../../../src/log/postgres/append.ts';
import { PostgresLease } from '../../../src/log/postgres/lease.ts';
import type { Lease } from '../../../src/log/store.ts';
import { enterPhase, openChamber } from '../../kit/chambers.ts';
import { openService } from '../../kit/open-service.ts';
import { connect, execute, openStore, temporaryPostgres } from '../../kit/postgres.ts';
import { atEnd, temporaryFolder } from '../../kit/temporary.ts';
import { TestService } from '../../kit/test-service.ts';
import { eventually } from '../../kit/until.ts';
import { entry, NONE, report } from '../entries.ts';

const END_NOW = "UPDATE leases SET ends_at = '-infinity'";

async function held(lease: Lease): Promise<string> {
  await eventually(() => expect(lease.token).toBeDefined(), 15_000);
  return lease.token as string;
}

/** Opens two nodes, of which the first holds the lease. */
async function openTwo() {
  const url = await temporaryPostgres();
  const [one, other] = [await openStore(url), await openStore(url)];
  const first = one.nodes.lease('work');
  const token = await held(first);
  return { url, one, other, first, token };
}

describe('a lease', () => {
  it('a lease is held by one node, and by another after its release', async () => {
    const { one, other, first, token } = await openTwo();
    const second = other.nodes.lease('work');
    const unrelated = other.nodes.lease('other work');
    await held(unrelated);
    expect([second.token, await one.log.append({ entries: [entry(1, 1, { lease: token })] })]).toEqual([
      undefined,
      NONE,
    ]);
    await first.release();
    expect(await held(second)).not.toBe(token);
    expect(first.token).toBe(undefined);
    expect(await one.log.append({ entries: [entry(1, 2, { lease: token })] })).toEqual(report([1, 1]));
  });

  it('a lease whose end is further away than its length has expired, as after the database’s clock was set back', async () => {
    const url = await temporaryPostgres();
    const store = await openStore(url);
    await execute(url, "INSERT INTO leases VALUES ('work', 'a dead node', clock_timestamp() + interval '1 hour')");
    await held(store.nodes.lease('work'));
  });

  it('an expired lease passes to another node, and the decisions of a disconnected holder are rejected', async () => {
    const url = await temporaryPostgres();
    const [one, other, client] = [await openStore(url), await openStore(url), await connect(url)];
    let isCut = false;
    const first = new PostgresLease('work', async (text, values = []) => {
      if (isCut) throw new Error('cut off');
      return (await client.query(text, [...values])).rows;
    });
    const token = await held(first);
    isCut = true;
    const second = other.nodes.lease('work');
    await execute(url, END_NOW);
    const next = await held(second);
    expect(first.token).toBe(token);
    expect(await other.log.append({ entries: [entry(1, 1, { lease: next })] })).toEqual(NONE);
    const late = [entry(1, 2), entry(1, 3, { lease: token }), entry(2, 1), entry('did:key:zAnn', 1, { lease: token })];
    expect(await one.log.append({ entries: late })).toEqual(report([1, 1], ['did:key:zAnn', 0]));
    expect([await one.log.lastEventId(1), await one.log.lastEventId(2)]).toEqual([1, 1]);
    await eventually(() => expect(first.token).toBe(undefined), 15_000);
    first.stop();
  });

  it('a lease ends when the outcome of an append is unknown; that append is rejected under the next holder', async () => {
    const { url, one, first, token } = await openTwo();
    await execute(
      url,
      `CREATE FUNCTION fill() RETURNS trigger LANGUAGE plpgsql AS
         $$ BEGIN RAISE EXCEPTION 'the disk is full' USING ERRCODE = '53100'; END $$;
       CREATE TRIGGER full_disk BEFORE INSERT ON events EXECUTE FUNCTION fill()`,
    );
    await expect(one.log.append({ entries: [entry(1, 1)] })).rejects.toThrow('the log cannot be used');
    expect(first.token).toBe(token);
    await expect(one.log.append({ entries: [entry(1, 1, { lease: token })] })).rejects.toThrow(
      'the log cannot be used',
    );
    expect(first.token).toBe(undefined);
    await execute(url, 'DROP TRIGGER full_disk ON events');
    // The time of the former holder is over.
    const next = await held(first);
    expect(await one.log.append({ entries: [entry(1, 1, { lease: token })] })).toEqual(
      report([1, 0], [ALL_CHAMBERS, 0]),
    );
    expect(await one.log.append({ entries: [entry(1, 1, { lease: next })] })).toEqual(NONE);
  });

  it('a lease passes only after an append in progress, and an append waits for a new holder', async () => {
    const { url, one, token } = await openTwo();
    const [client, taker] = await Promise.all([connect(url), connect(url)]);
    const waits = () =>
      eventually(async () => {
        const waiting = await execute(url, "SELECT query FROM pg_stat_activity WHERE wait_event_type = 'Lock'");
        expect(waiting.filter(({ query }) => /leases/.test(String(query))).length).toBeGreaterThan(0);
      });
    const append = (entries: readonly LogEntry[]) =>
      new Appender({
        logId: one.log.logId,
        damagedStreams: new DamagedStreams(),
        chamberIdMin: 1,
        clock: { now: Date.now },
      }).begin({ entries, registrations: [] })(client);
    await client.query('BEGIN');
    expect(await append([entry(1, 1, { lease: token })])).toEqual(NONE);
    const taken = taker.query("UPDATE leases SET holder = 'new'");
    await waits();
    await client.query('COMMIT');
    await taken;
    await taker.query('BEGIN');
    await taker.query("UPDATE leases SET holder = 'newer'");
    const refused = append([entry(1, 2, { lease: 'new' })]);
    await waits();
    await taker.query('COMMIT');
    expect(await refused).toEqual(report([1, 1]));
  });
});

describe('a record of the relayer', () => {
  it('a record of the relayer is rejected once its lease has ended or the chamber has grown, and is not retried', async () => {
    const url = await temporaryPostgres();
    const store = await openStore(url);
    const service = new TestService({ store });
    const id = await openChamber(service, [await service.agent()]);
    await enterPhase(service, id, 'ALLOCATE_REVEAL');
    const { root } = await service.must('GET', `/chambers/${id}/merkle-preview`);
    service.clock.advance(100 * 3_600_000);
    const lease = await held(store.nodes.lease('relayer'));
    const payload = { chainId: 1, nonce: 0, txHash: `0x${'11'.repeat(32)}`, rawTransaction: '0x00' } as const;
    const record = (basis: { readonly root: `0x${string}`; readonly lease: string }) =>
      service.forum.submit({
        operation: 'record',
        chamberId: id,
        fact: { type: 'relay.commit_submitted', payload },
        basis,
      });
    await expect(record({ root: `0x${'22'.repeat(32)}`, lease })).rejects.toMatchObject({ code: 'FORUM_ERR_CONFLICT' });
    await expect(record({ root, lease: 'of another node' })).rejects.toMatchObject({ code: 'FORUM_ERR_CONFLICT' });
    expect(await store.log.lastEventId(id)).toBe(2);
    await record({ root, lease });
    expect(await store.log.lastEventId(id)).toBe(3);
  });
});

const NOTE_CLAIMS = `CREATE TABLE claims (name text);
CREATE FUNCTION note_claim() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO claims VALUES (new.name); RETURN new; END $$;
CREATE TRIGGER note_claim BEFORE INSERT ON leases FOR EACH ROW EXECUTE FUNCTION note_claim()`;

/** An unreachable chain, with which a service still starts. */
const CHAIN = {
  CHAIN: '',
  RPC_URL: 'http://127.0.0.1:9',
  RELAYER_PRIVATE_KEY: `0x${'11'.repeat(32)}`,
  CHAMBER_REGISTRY_ADDRESS: `0x${'22'.repeat(20)}`,
  IDEA_FACTORY_ADDRESS: `0x${'33'.repeat(20)}`,
};

it('a failed start claims no lease for publisher or relayer', async () => {
  const url = await temporaryPostgres();
  await (await openStore(url)).close();
  await execute(url, NOTE_CLAIMS);
  const port = await freePort();
  const taken = createServer();
  atEnd(() => void taken.close());
  // The port is free during the checks, and taken once everything else is open.
  const write = (line: string) => {
    if (JSON.parse(line).msg === 'metrics') taken.listen(port, '127.0.0.1');
  };
  const ports = { PORT: String(port), METRICS_PORT: '0' };
  const settings = { ...CHAIN, ...ports, DATABASE_URL: url, SERVICE_KEY_FILE: join(temporaryFolder(), 'keys.json') };
  const clock = { time: Date.now, elapsed: () => performance.now() };
  const starting = openService(settings, { clock, logger: pino({ level: 'info' }, { write }) });
  await expect(starting).rejects.toThrow('cannot listen');
  expect(taken.listening).toBe(true);
  expect(await execute(url, 'SELECT name FROM claims')).toEqual([]);
});
