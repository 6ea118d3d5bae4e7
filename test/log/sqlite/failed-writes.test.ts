// While the log cannot be written, whole batches get 503 and nothing is partly written; the service recovers without a restart.
import { readdirSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { copyLog } from '../../../src/log/open-log.ts';
import { backupDatabase } from '../../../src/log/sqlite/backup.ts';
import { openSqliteStore } from '../../../src/log/sqlite/store.ts';
import { enterPhase, openChamber } from '../../kit/chambers.ts';
import { TestClock } from '../../kit/clock.ts';
import { fill } from '../../kit/small-file-system.ts';
import { smallDisk, temporaryDatabase } from '../../kit/temporary.ts';
import { type Answer, TestService } from '../../kit/test-service.ts';
import { foreignConnection } from '../entries.ts';

async function inDebate(path: string) {
  const service = new TestService({ path });
  const by = await service.agent();
  const id = await openChamber(service, [by]);
  await enterPhase(service, id, 'DEBATE');
  const debate = (comment: string) => service.prepare('POST', `/chambers/${id}/debate`, { by, body: { comment } });
  return { service, id, debate };
}

function expectUnavailable(answer: Answer) {
  expect(answer).toMatchObject({
    status: 503,
    body: { error: 'FORUM_ERR_UNAVAILABLE', detail: expect.stringContaining('retry') },
  });
  expect(answer.headers.get('retry-after')).toBe('1');
}

describe('a write lock of another program', () => {
  it('a whole batch is rejected while another program holds the write lock; when sent again, each request is accepted once', async () => {
    const path = temporaryDatabase();
    const { service, id, debate } = await inDebate(path);
    const before = await service.lines(id);
    const batch = ['a', 'b', 'c'].map(debate);
    const intruder = foreignConnection(path);
    intruder.exec('BEGIN IMMEDIATE');
    for (const answer of await Promise.all(batch.map((request) => service.send(request)))) expectUnavailable(answer);
    expect(await service.lines(id)).toEqual(before);
    intruder.exec('ROLLBACK');
    const eventIds = [];
    for (const request of [...batch, ...batch]) eventIds.push((await service.send(request)).body.eventId);
    expect(eventIds).toEqual([3, 4, 5, 3, 4, 5]);
  });

  it('the service is unready while the clock cannot be persisted', async () => {
    const path = temporaryDatabase();
    const { service } = await inDebate(path);
    const intruder = foreignConnection(path);
    intruder.exec('BEGIN IMMEDIATE');
    await expect(service.forum.persistClock()).rejects.toMatchObject({ code: 'FORUM_ERR_UNAVAILABLE' });
    expectUnavailable(await service.request('GET', '/ready'));
    expect(await service.must('GET', '/health')).toMatchObject({ ok: true });
    intruder.exec('ROLLBACK');
    expectUnavailable(await service.request('GET', '/ready'));
    service.clock.advance(1_000);
    await service.forum.persistClock();
    expect(await service.must('GET', '/ready')).toEqual({ ready: true });
    await service.close();
    const clock = new TestClock();
    clock.set(service.clock.read() - 1_000);
    expect(new TestService({ path, clock }).forum.now()).toBe(service.clock.read());
  });

  it('a rejected move ends readiness, and an accepted move restores it', async () => {
    const path = temporaryDatabase();
    const { service, debate } = await inDebate(path);
    const intruder = foreignConnection(path);
    intruder.exec('BEGIN IMMEDIATE');
    const request = debate('a');
    expectUnavailable(await service.send(request));
    expectUnavailable(await service.request('GET', '/ready'));
    intruder.exec('ROLLBACK');
    expect(await service.send(request)).toMatchObject({ status: 200 });
    expect(await service.must('GET', '/ready')).toEqual({ ready: true });
  });

  it('reads still work while another program holds the write lock', async () => {
    const path = temporaryDatabase();
    const { service, id, debate } = await inDebate(path);
    const preview = await service.must('GET', `/chambers/${id}/merkle-preview`);
    const intruder = foreignConnection(path);
    intruder.exec('BEGIN IMMEDIATE');
    expectUnavailable(await service.send(debate('a')));
    expect(await service.must('GET', `/chambers/${id}/merkle-preview`)).toEqual(preview);
  });
});

describe('a full disk', () => {
  it('a service on a full disk returns 503, and recovers when there is space again', async ({ skip }) => {
    const disk = smallDisk('2m');
    if (disk === undefined) return skip();
    const ballast = `${disk}/ballast`;
    const { service, id, debate } = await inDebate(`${disk}/chambers.db`);
    fill(ballast);
    truncateSync(ballast, statSync(ballast).size - 262_144);
    const accepted: unknown[] = [];
    let answer = await service.send(debate('x'.repeat(8_000)));
    for (; answer.status === 200; answer = await service.send(debate('x'.repeat(8_000))))
      accepted.push(answer.body.eventId);
    expectUnavailable(answer);
    expect(accepted.length).toBeGreaterThan(0);
    const count = (await service.lines(id)).length;
    expect(accepted).toEqual(Array.from({ length: count - 2 }, (_, at) => at + 3));
    writeFileSync(ballast, '');
    expect((await service.send(debate('at last'))).body).toEqual({ eventId: count + 1 });
    expect(await service.must('GET', `/chambers/${id}/merkle-preview`)).toMatchObject({ eventCount: count + 1 });
  });

  it('a copy that does not fit on the disk leaves no draft', async ({ skip }) => {
    const disk = smallDisk('2m');
    if (disk === undefined) return skip();
    const from = temporaryDatabase();
    await openSqliteStore(from).close();
    fill(`${disk}/ballast`);
    await expect(copyLog(from, `${disk}/copy.db`)).rejects.toThrow('full');
    await expect(backupDatabase(from, `${disk}/copy.db`)).rejects.toThrow('full');
    expect(readdirSync(disk)).toEqual(['ballast']);
    await openSqliteStore(from).close();
  });
});
