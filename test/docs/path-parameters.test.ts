// Path parameters as generated clients send them: encoded by encodeURIComponent, including slashes and colons.
import { expect, it } from 'vitest';
import { openApiDocument } from '../../src/docs/openapi.ts';
import { httpRoutes } from '../../src/http/app.ts';
import { ALICE, CHAMBER_ID, SAMPLE_SEED } from '../../src/moves/samples.ts';
import { streamEndpoints } from '../../src/stream/endpoints.ts';
import { fromHex } from '../../src/vocabulary/values.ts';
import { enterPhase, openChamber } from '../kit/chambers.ts';
import { Signer } from '../kit/signer.ts';
import { registrationOf, TestService } from '../kit/test-service.ts';
import { LIMITS } from './limits.ts';

const endpoints = [...httpRoutes, ...streamEndpoints];
const { paths } = openApiDocument({ version: '1', baseUrls: ['https://forum.test'], limits: LIMITS, endpoints });
/** Skipped operations: their data exists only in a later phase than that of the other examples, or they need a socket. */
const NOT_READ = ['getOutcome', 'streamEvents'];

/** A service with the agent, chamber, event, idea and tile of the examples. */
async function exampleService(): Promise<TestService> {
  const service = new TestService();
  const alice = new Signer(fromHex(SAMPLE_SEED));
  expect(alice.did).toBe(ALICE);
  await service.must('POST', '/register', { body: registrationOf(alice) });
  for (const style of ['dry', 'warm']) {
    await service.must('PUT', '/personality', { by: alice, body: { patch: { style } } });
  }
  for (let chamberId = 1; chamberId < CHAMBER_ID; chamberId++) await openChamber(service, [alice]);
  expect(await openChamber(service, [alice])).toBe(CHAMBER_ID);
  await enterPhase(service, CHAMBER_ID, 'PROPOSAL');
  for (const ticker of ['RAIN', ...Array.from({ length: 8 }, (_, n) => `T${n}`)]) {
    await service.must('POST', `/chambers/${CHAMBER_ID}/propose`, { by: alice, body: { name: ticker, ticker } });
  }
  await service.publish();
  return service;
}

const operations = Object.entries(paths).flatMap(([path, { get }]) =>
  path.includes('{') && get !== undefined && !NOT_READ.includes(get.operationId) ? [{ path, ...get }] : [],
);

it('each example returns the same when it is encoded', async () => {
  const service = await exampleService();
  for (const { path, operationId, parameters } of operations) {
    const read = async (encode: (text: string) => string) => {
      let target = path;
      for (const { name, in: place, example } of parameters) {
        const value = name === 'logId' ? service.log.logId : String(example);
        if (place === 'path') target = target.replace(`{${name}}`, encode(value));
      }
      const query = parameters.flatMap(({ name, in: place, required, example }) =>
        place === 'query' && required ? [`${name}=${example}`] : [],
      );
      const response = await service.app.request(query.length === 0 ? target : `${target}?${query.join('&')}`, {}, {});
      return { operationId, status: response.status, text: await response.text() };
    };
    const plain = await read((text) => text);
    expect(plain, operationId).toMatchObject({ status: 200 });
    expect(await read(encodeURIComponent)).toEqual(plain);
  }
  expect(operations.map(({ operationId }) => operationId)).toContain('getTile');
});

it('a tile’s path may encode only slashes, so that each tile has one address', async () => {
  const service = await exampleService();
  const statusOf = async (tile: string) =>
    (await service.app.request(`/log/${service.log.logId}/tile/${tile}`, {}, {})).status;
  expect(await statusOf('0%2f000%2Ep/3')).toBe(404);
  expect(await statusOf('0%252F000.p%252F3')).toBe(404);
  expect(await statusOf('0%2f000.p%2F3')).toBe(200);
});
