// The same commands at the same times leave the same bytes in both stores.
import { expect, it } from 'vitest';
import { keysInMemory } from '../../../src/keys/key-file.ts';
import { openSqliteStore } from '../../../src/log/sqlite/store.ts';
import { accountRecordSchemas } from '../../../src/moves/records.ts';
import { moveOfEvent } from '../../../src/moves/registry.ts';
import { START } from '../../kit/clock.ts';
import { Commands, linesOf } from '../../kit/commands.ts';
import { openStore, temporaryPostgres } from '../../kit/postgres.ts';
import { TestService } from '../../kit/test-service.ts';

const { COMMANDS = '1000' } = process.env;

it(`${COMMANDS} random commands get the same answers and leave the same lines (COMMANDS)`, {
  timeout: 600_000,
}, async () => {
  // Creations record them.
  const serviceKeys = keysInMemory('5a'.repeat(16), START);
  const keys = () => serviceKeys;
  const services = [
    new TestService({ store: openSqliteStore(':memory:'), keys }),
    new TestService({ store: await openStore(await temporaryPostgres()), keys }),
  ] as const;
  const commands = new Commands(11, { hasRounds: true });
  for (let step = 0; step < Number(COMMANDS); step++) {
    const [one, other] = await commands.step(services);
    expect(other).toBe(one);
  }
  const [one, other] = await Promise.all(services.map((service) => linesOf(service, commands.streams)));
  expect(other).toBe(one);
  const types = new Set([...(one ?? '').matchAll(/"type":"([a-z_.]+)"\}\n/g)].map(([, type]) => type));
  expect([...types].sort()).toEqual(TYPES.toSorted());
});

const TYPES = [...Object.keys(accountRecordSchemas), ...Object.keys(moveOfEvent), 'chamber.committed'];
