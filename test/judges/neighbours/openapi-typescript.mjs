import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';

const { BASE_URL } = process.env;
const run = (program, ...words) =>
  execFileSync(process.execPath, [`node_modules/.bin/${program}`, ...words], { encoding: 'utf8' });

mkdirSync('openapi-typescript', { recursive: true });
run('openapi-typescript', `${BASE_URL}/openapi.json`, '-o', 'openapi-typescript/schema.d.ts');
writeFileSync(
  'openapi-typescript/use.ts',
  `import createClient from 'openapi-fetch';
import type { paths } from './schema.d.ts';

const client = createClient<paths>({ baseUrl: '${BASE_URL}' });
const { data } = await client.GET('/chambers/{id}', { params: { path: { id: 1 } } });
const { data: service } = await client.GET('/');
const logId: string = service!.log.logId;
const tile = await client.GET('/log/{logId}/tile/{tile}', {
  params: { path: { logId, tile: '0/000.p/3' } },
  parseAs: 'arrayBuffer',
});
const { error } = await client.GET('/chambers/{id}', { params: { path: { id: 99 } } });
console.log(JSON.stringify([data?.phase, tile.response.status, error?.error]));
`,
);
const options = ['--noEmit', '--strict', '--skipLibCheck', '--allowImportingTsExtensions', '--target', 'es2022'];
run('tsc', ...options, '--module', 'nodenext', '--lib', 'es2023,dom', 'openapi-typescript/use.ts');
const printed = execFileSync(process.execPath, ['openapi-typescript/use.ts'], { encoding: 'utf8' });
assert.deepEqual(JSON.parse(printed), ['COMMITTED', 200, 'FORUM_ERR_NOT_FOUND']);
console.log('types that compile; a chamber, a tile and an error by openapi-fetch');
