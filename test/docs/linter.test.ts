import { createConfig, lintFromString } from '@redocly/openapi-core';
import { expect, test } from 'vitest';
import { openApiDocument } from '../../src/docs/openapi.ts';
import { httpRoutes } from '../../src/http/app.ts';
import { streamEndpoints } from '../../src/stream/endpoints.ts';
import { LIMITS } from './limits.ts';

const endpoints = [...httpRoutes, ...streamEndpoints];
const document = openApiDocument({
  version: '1.2.3',
  baseUrls: ['https://chambers.example.org'],
  limits: LIMITS,
  endpoints,
});

test('a public linter finds nothing in the OpenAPI document', async () => {
  const config = await createConfig({ extends: ['recommended'] });
  const problems = await lintFromString({ source: JSON.stringify(document), absoluteRef: '/openapi.json', config });
  expect(problems.map(({ ruleId, message, location }) => [ruleId, message, location[0]?.pointer])).toEqual([]);
});
