import assert from 'node:assert/strict';
import { createClient } from '@hey-api/openapi-ts';

const { BASE_URL, LINES } = process.env;
const output = { path: 'hey-api', importFileExtension: '.ts' };
await createClient({ input: `${BASE_URL}/openapi.json`, output, logs: { level: 'silent', file: false } });
const api = await import(`${process.cwd()}/hey-api/sdk.gen.ts`);

const { data: chamber } = await api.getChamber({ path: { id: 1 }, throwOnError: true });
assert.equal(chamber.phase, 'COMMITTED');
const { data: service } = await api.getService({ throwOnError: true });
const tile = await api.getTile({ path: { logId: service.log.logId, tile: '0/000.p/3' } });
assert.equal(tile.response.status, 200);
const { data: agent } = await api.getAgent({ path: { did: chamber.members[0] }, throwOnError: true });
assert.equal(agent.did, chamber.members[0]);
const { stream } = await api.streamEvents({
  path: { id: 1 },
  query: { after: 0, end: 'settled' },
  headers: { Accept: 'text/event-stream' },
});
let count = 0;
for await (const { eventId } of stream) assert.equal(eventId, ++count);
assert.equal(count, Number(LINES));
console.log(`a chamber, a tile, an agent and ${count} server-sent events`);
