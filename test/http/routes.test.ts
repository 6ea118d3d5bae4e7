// All routes: CORS on every response, 404 and 405 in the usual form, preflight.
import { describe, expect, it } from 'vitest';
import type { SignatureVerifier } from '../../src/crypto/verify.ts';
import { routeOf } from '../../src/http/app.ts';
import { createVerifier } from '../../src/verifier/verifier.ts';
import { openChamber } from '../kit/chambers.ts';
import { refusal, TestService, withAgent } from '../kit/test-service.ts';

const closedVerifier: SignatureVerifier = async (...job) => {
  const verifier = createVerifier({ threads: 0 });
  await verifier.close();
  return verifier.verify(...job);
};

describe('the service itself', () => {
  it('the service returns its name, version and state', async () => {
    const service = new TestService();
    const { logId } = service.log;
    expect(await service.must('GET', '/?x=1')).toEqual({
      name: 'Chamber Coordination Service',
      version: '1.2.3',
      guide: 'https://forum.test/agent-guide',
      docs: 'https://forum.test/docs',
      llms: 'https://forum.test/llms.txt',
      openapi: 'https://forum.test/openapi.json',
      log: {
        logId,
        origin: `forum.test/log/${logId}`,
        prefix: `/log/${logId}`,
        checkpointKey: expect.stringMatching(`^forum\\.test/log/${logId}\\+[0-9a-f]{8}\\+[A-Za-z0-9+/=]{44}$`),
      },
      features: expect.arrayContaining(['receipts', 'seen']),
    });
    expect(await service.must('GET', '/health')).toEqual({ ok: true, env: 'development', chain: null });
    expect(await service.must('GET', '/ready')).toEqual({ ready: true });
  });

  it.each([
    ['rejects every signature', async () => false, 'signatures are not verified'],
    ['is closed', closedVerifier, 'the service is shutting down'],
  ])('the service is not ready while its verifier %s', async (_title, verify, detail) => {
    const { status, body, headers } = await new TestService({ verify }).request('GET', '/ready');
    expect([status, body]).toEqual([503, { error: 'FORUM_ERR_UNAVAILABLE', detail, retryAfter: 1 }]);
    expect(headers.get('retry-after')).toBe('1');
  });
});

describe('CORS', () => {
  it.each(['/chambers', '/chambers/1/join', '/register', '/nowhere'])(
    'preflight of %s is 204 for any origin',
    async (path) => {
      const headers = { origin: 'https://elsewhere.test', 'access-control-request-method': 'POST' };
      const answer = await new TestService().request('OPTIONS', path, { headers });
      expect([answer.status, answer.body]).toEqual([204, undefined]);
      expect(answer.headers.get('access-control-allow-origin')).toBe('*');
      expect(answer.headers.get('access-control-allow-methods')).toMatch(/GET.*POST.*PUT/);
      for (const name of [
        'Content-Type',
        'Content-Digest',
        'Signature-Input',
        'Signature',
        'X-Dev-Did',
        'Last-Event-ID',
        'If-None-Match',
      ]) {
        expect(answer.headers.get('access-control-allow-headers')).toContain(name);
      }
    },
  );

  it.each([
    ['GET', '/', 200],
    ['GET', '/chambers', 200],
    ['GET', '/chambers?limit=0', 400],
    ['GET', '/me', 401],
    ['GET', '/chambers/9', 404],
    ['GET', '/nowhere', 404],
    ['DELETE', '/chambers', 405],
  ])('CORS headers are on the response to %s %s: %i', async (method, path, status) => {
    const answer = await new TestService().request(method, path);
    expect(answer.status).toBe(status);
    expect(answer.headers.get('access-control-allow-origin')).toBe('*');
    expect(answer.headers.get('content-type')).toMatch(/^application\/json/);
  });
});

describe('an unknown path or id', () => {
  const ids = [
    '0',
    '-1',
    '01',
    '1.0',
    'abc',
    '1e0',
    '%31%32',
    '9007199254740992',
    '99999999999999999999',
    '%00',
    '%ff',
  ];
  const reads = ['', '/ideas', '/allocations', '/outcome', '/merkle-preview', '/events/1/proof'];

  it.each(ids)('the unknown chamber id %s is 404 on every read', async (id) => {
    const service = new TestService();
    for (const path of reads) {
      const { status, body } = await service.request('GET', `/chambers/${id}${path}`);
      expect([path, status, body.error]).toEqual([path, 404, 'FORUM_ERR_NOT_FOUND']);
    }
  });

  it.each(ids)('the unknown chamber id %s is 404 on a move', async (id) => {
    const { service, by } = await withAgent();
    expect(await service.request('POST', `/chambers/${id}/join`, { by })).toMatchObject(
      refusal(404, 'FORUM_ERR_NOT_FOUND'),
    );
  });

  it.each([
    '/nowhere',
    '/chambers/',
    '/chambers//',
    '/chambers/1/',
    '/Chambers',
    '/ideas/',
    '/chambers/1/unknown',
    '//',
  ])('the unknown path %s is 404', async (path) => {
    const service = new TestService();
    await openChamber(service, []);
    const { status, body } = await service.request('GET', path);
    expect([status, body.error, typeof body.detail]).toEqual([404, 'FORUM_ERR_NOT_FOUND', 'string']);
  });
});

describe('a method that a path does not allow', () => {
  it.each([
    ['GET', '/register', 'OPTIONS, POST'],
    ['POST', '/me', 'GET, HEAD, OPTIONS'],
    ['POST', '/personality', 'OPTIONS, PUT'],
    ['PUT', '/chambers', 'GET, HEAD, OPTIONS, POST'],
    ['DELETE', '/chambers/1', 'GET, HEAD, OPTIONS'],
    ['GET', '/chambers/1/join', 'OPTIONS, POST'],
    ['PATCH', '/ideas/ABC', 'GET, HEAD, OPTIONS'],
  ])('%s %s is 405, and Allow names the methods of the path', async (method, path, allow) => {
    const answer = await new TestService().request(method, path);
    expect(answer).toMatchObject(refusal(405, 'FORUM_ERR_METHOD'));
    expect(answer.headers.get('allow')).toBe(allow);
  });

  it('HEAD returns the response of GET without a body', async () => {
    const answer = await new TestService().request('HEAD', '/chambers');
    expect([answer.status, answer.body]).toEqual([200, undefined]);
  });
});

describe('the route of a request', () => {
  it.each([
    ['GET', '/', '/'],
    ['HEAD', '/chambers/1', '/chambers/:id'],
    ['GET', '/chambers/1/ideas', '/chambers/:id/ideas'],
    ['POST', '/chambers/1/allocate/commit', '/chambers/:id/allocate/commit'],
    ['GET', '/ideas/ABC', '/ideas/:ticker'],
    ['POST', '/chambers/1', undefined],
    ['DELETE', '/chambers', undefined],
    ['GET', '/chambers/1/none', undefined],
    ['GET', '/chambers/1/ideas/2', undefined],
    ['GET', '/constructor/__proto__', undefined],
  ])('the route of %s %s is %s', (method, path, route) => {
    expect(routeOf(new TestService().app, method, path)).toBe(route);
  });
});
