// A key is retired at one node while its agent moves at the others: every written move was decided before the retirement.
import { describe, expect, it } from 'vitest';
import { audit, type Line, parse } from '../../audit/forge.ts';
import { allocationOf, enterPhase, openChamber } from '../../kit/chambers.ts';
import { TestClock } from '../../kit/clock.ts';
import { openStore, temporaryPostgres } from '../../kit/postgres.ts';
import { Random } from '../../kit/random.ts';
import type { Signer } from '../../kit/signer.ts';
import { TestService } from '../../kit/test-service.ts';
import { agentWith, retirementBy, walletOf } from '../../kit/wallets.ts';

const NODES = 3;
const AGENTS = 10;
const CHAMBERS = 5;
/** The total number of retirements; RETIREMENTS=1000 takes minutes. */
const { RETIREMENTS = '20' } = process.env;
const ROUNDS = Math.ceil(Number(RETIREMENTS) / AGENTS);

async function openNodes() {
  const url = await temporaryPostgres();
  const clock = new TestClock();
  const nodes: TestService[] = [];
  for (let node = 0; node < NODES; node++) nodes.push(new TestService({ store: await openStore(url), clock }));
  return { clock, nodes, first: nodes[0] as TestService };
}

async function accountOf(service: TestService, { did }: Signer): Promise<Line[]> {
  const { ndjson } = await service.log.readPage(did, 0, 100);
  return parse(ndjson.toString().trimEnd().split('\n'));
}

interface Asked {
  readonly by: Signer;
  readonly method: string;
  readonly path: string;
  readonly body: object;
}

/** Concurrent requests: commits in all chambers, two changes of the personality, and the retirement by the key or the wallet. */
async function askedOf(by: Signer, index: number, ids: readonly number[], issuedAt: string): Promise<readonly Asked[]> {
  const commits = ids.map((id) => {
    const path = `/chambers/${id}/allocate/commit`;
    return { by, method: 'POST', path, body: allocationOf(id, by).commit };
  });
  const changes = ['dry', 'wet'].map((style) => ({
    by,
    method: 'PUT',
    path: '/personality',
    body: { patch: { style } },
  }));
  const retirement =
    index % 2 === 0
      ? { by, method: 'POST', path: '/me/retire', body: {} }
      : {
          by,
          method: 'POST',
          path: `/agents/${by.did}/retire`,
          body: await retirementBy(walletOf(index), by.did, { issuedAt }),
        };
  return [...commits, ...changes, retirement];
}

describe('a retirement at one node and moves at the others', () => {
  it(`${ROUNDS * AGENTS} keys retire at one node while their agents move at others, and no line names or follows a retirement`, {
    timeout: 1_800_000,
  }, async () => {
    const { clock, nodes, first } = await openNodes();
    const random = new Random(38);
    let [accepted, refused] = [0, 0];
    for (let round = 0; round < ROUNDS; round++) {
      const agents: Signer[] = [];
      for (let agent = 0; agent < AGENTS; agent++) agents.push(await agentWith(first, walletOf(agent)));
      const ids: number[] = [];
      for (let chamber = 0; chamber < CHAMBERS; chamber++) ids.push(await openChamber(first, agents));
      await enterPhase(first, ids[0] as number, 'ALLOCATE_COMMIT');
      const issuedAt = new Date(clock.read()).toISOString();
      const all = (await Promise.all(agents.map((by, index) => askedOf(by, index, ids, issuedAt)))).flat();
      const shuffled = all.map((asked) => [random.below(1_000_000), asked] as const).sort(([a], [b]) => a - b);
      const answers = await Promise.all(
        shuffled.map(([, { method, path, ...call }]) => random.pick(nodes).request(method, path, call)),
      );
      for (const [index, { status, body }] of answers.entries()) {
        const [, { path }] = shuffled[index] as readonly [number, Asked];
        if (path.endsWith('/retire'))
          expect([path, status, body]).toEqual([path, 200, { eventId: expect.any(Number) }]);
        else
          expect([path, status, body.error]).toEqual([
            path,
            expect.any(Number),
            status === 200 ? undefined : 'FORUM_ERR_RETIRED',
          ]);
        if (status === 200) accepted++;
        else refused++;
      }
      for (const by of agents) {
        const [id = 0] = ids;
        const late = await random.pick(nodes).request('POST', `/chambers/${id}/allocate/commit`, { by, body: {} });
        expect(late).toMatchObject({ status: 403, body: { error: 'FORUM_ERR_RETIRED' } });
      }
      const accounts = new Map<string, Line[]>();
      for (const by of agents) accounts.set(by.did, await accountOf(first, by));
      for (const id of ids) {
        for (const { did, payload } of await first.events(id)) {
          const account = accounts.get(did ?? '') ?? [];
          expect(account.map(({ type }) => type).indexOf('agent.retired')).toBe(account.length - 1);
          expect((payload as { accountEventId: number }).accountEventId).toBeLessThan(account.length);
        }
      }
      const text = [...accounts.values()]
        .flat()
        .map((line) => JSON.stringify(line))
        .join('\n');
      const { check } = await audit(`${(await first.lines(ids[0] as number)).join('\n')}\n`, { accounts: `${text}\n` });
      expect(check('registration')).toMatchObject({ verdict: 'verified', findings: [] });
    }
    // Both sides win sometimes.
    expect(accepted).toBeGreaterThan(ROUNDS * AGENTS);
    expect(refused).toBeGreaterThan(0);
  });
});
