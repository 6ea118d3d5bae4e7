// A withdrawal and the pass that ends the debate arrive in the same millisecond, at two nodes: both get the same order, and the
// outcome matches it.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { auditFile } from '../../../src/audit/audit.ts';
import { openSqliteStore } from '../../../src/log/sqlite/store.ts';
import { allocationOf, openChamber } from '../../kit/chambers.ts';
import { TestClock } from '../../kit/clock.ts';
import { openStore, temporaryPostgres } from '../../kit/postgres.ts';
import { temporaryFolder } from '../../kit/temporary.ts';
import { TestService } from '../../kit/test-service.ts';

const ROUNDS = 40;
const PACE = { turnSeconds: 600, rounds: { proposal: 1, debate: 1 }, minMembers: 1 };

it.each([
  ['two nodes on PostgreSQL', 2],
  ['one process on SQLite', 1],
] as const)(
  'a withdrawal and the pass that ends the debate get one order, by %s',
  { timeout: 300_000 },
  async (_title, count) => {
    const clock = new TestClock();
    const url = count === 2 ? await temporaryPostgres() : undefined;
    const nodes: TestService[] = [];
    for (let node = 0; node < count; node++) {
      const store = url === undefined ? openSqliteStore(':memory:') : await openStore(url);
      nodes.push(new TestService({ store, clock, settings: { CHAMBERS_OPEN_PER_DID_MAX: '100' } }));
    }
    const [one, other = one] = nodes as [TestService];
    const by = await one.agent();
    const folder = temporaryFolder();
    const seen = new Set<string>();
    for (let round = 0; round < ROUNDS; round++) {
      const id = await openChamber(one, [by], PACE);
      const path = (move: string) => `/chambers/${id}/${move}`;
      await one.must('POST', path('start'), { by });
      for (const ticker of ['ONE', 'TWO'])
        await one.must('POST', path('propose'), { by, body: { name: ticker, ticker } });
      await one.must('POST', path('pass'), { by });
      const withdraw = one.prepare('POST', path('withdraw'), { by, body: { ideaId: 'idea-1' } });
      const pass = other.prepare('POST', path('pass'), { by });
      const sent = [() => one.send(withdraw), () => other.send(pass)];
      if (round % 2 === 1) sent.reverse();
      // Every other pair of rounds has no race, so that both orders occur.
      const answers =
        round % 4 < 2 ? await Promise.all(sent.map((send) => send())) : [await sent[0]?.(), await sent[1]?.()];
      const [withdrawal, passed] = round % 2 === 1 ? answers.reverse() : answers;
      expect(passed?.status).toBe(200);
      const isWithdrawn = withdrawal?.status === 200;
      if (!isWithdrawn) expect(withdrawal?.body).toMatchObject({ error: 'FORUM_ERR_PHASE' });
      seen.add(isWithdrawn ? 'withdrawn' : 'too late');
      for (const node of nodes) {
        const [idea] = await node.must('GET', path('ideas'));
        expect(idea.withdrawn).toBe(isWithdrawn);
      }
      const allocation = allocationOf(id, by, { 'idea-1': 1 });
      await other.must('POST', path('allocate/commit'), { by, body: allocation.commit });
      const revealed = await one.request('POST', path('allocate/reveal'), { by, body: allocation.reveal });
      expect([revealed.status, isWithdrawn]).toEqual([isWithdrawn ? 400 : 200, isWithdrawn]);
      const file = join(folder, `${id}.ndjson`);
      writeFileSync(file, (await one.lines(id)).map((line) => `${line}\n`).join(''));
      expect((await auditFile(file, {})).causes).toEqual([]);
    }
    expect([...seen].sort()).toEqual(['too late', 'withdrawn']);
  },
);
