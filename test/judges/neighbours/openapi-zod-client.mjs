import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';

const { BASE_URL } = process.env;
const read = async (path) => (await fetch(BASE_URL + path)).text();
writeFileSync('openapi.json', await read('/openapi.json'));
const words = ['node_modules/.bin/openapi-zod-client', 'openapi.json', '-o', 'zod-client.ts', '--export-schemas'];
execFileSync(process.execPath, words, { stdio: 'ignore' });
const { createApiClient, schemas } = await import(`${process.cwd()}/zod-client.ts`);

const lines = (await read('/chambers/1/events')).trimEnd().split('\n');
for (const line of lines) schemas.ChamberEvent.parse(JSON.parse(line));
assert.throws(() => schemas.ChamberEvent.parse({ ...JSON.parse(lines[0]), type: 'chamber.unknown' }));
const client = createApiClient(BASE_URL);
const chamber = await client.get('/chambers/:id', { params: { id: 1 } });
assert.equal(chamber.phase, 'COMMITTED');
console.log(`a chamber, and ${lines.length} events by their discriminated union`);
