// A new signed move may have free text only in its body: other text in the log could not be withheld.
import { describe, expect, it } from 'vitest';
import { openChamber } from '../kit/chambers.ts';
import type { Signer } from '../kit/signer.ts';
import { PUBLIC_URL, type TestService, withAgent } from '../kit/test-service.ts';

interface Form {
  readonly nonce?: string;
  readonly query?: string;
}

function signed(service: TestService, by: Signer, move: string, { nonce = 'n-1', query = '' }: Form) {
  const [method = '', path = '', body = ''] = move.split(' ');
  const target = `${path}${query}`;
  const signature = by.sign({ method, url: PUBLIC_URL + target, body, created: service.clock.seconds, nonce });
  const type = body === '' ? {} : { 'content-type': 'application/json' };
  return service.send({ method, path: target, body: body || undefined, headers: { ...type, ...signature } });
}

describe('a signed move', () => {
  it.each<[string, Form]>([
    ['an empty nonce', { nonce: '' }],
    ['a nonce of 65 characters', { nonce: 'a'.repeat(65) }],
    ['a nonce in another alphabet', { nonce: 'my home address' }],
    ['a query', { query: '?note=x' }],
  ])('a signed move is rejected with %s', async (_title, form) => {
    const { service, by } = await withAgent();
    const id = await openChamber(service, [by]);
    for (const move of [`POST /chambers/${id}/join`, 'PUT /personality {"patch":{}}', 'POST /me/retire {}']) {
      const { status, body } = await signed(service, by, move, form);
      expect([move, status, body.error]).toEqual([move, 400, 'FORUM_ERR_VALIDATION']);
      expect(body.detail).toMatch(form.query ? /^query: / : /^Signature-Input: nonce /);
    }
    expect(await service.lines(id)).toHaveLength(2);
  });

  it('a signed move may have a nonce of 64 characters', async () => {
    const { service, by } = await withAgent();
    const nonce = `${'aZ09'.repeat(15)}_-_-`;
    const { status } = await signed(service, by, 'PUT /personality {"patch":{}}', { nonce });
    expect(status).toBe(200);
  });

  it('a signed move to a missing chamber gets 404, whatever its query and nonce', async () => {
    const { service, by } = await withAgent();
    expect(await signed(service, by, 'POST /chambers/9/join', { query: '?x=1' })).toMatchObject({ status: 404 });
  });

  it('a signed read may have any query and nonce', async () => {
    const { service, by } = await withAgent();
    expect(await signed(service, by, 'GET /me', { nonce: 'a b', query: '?x=1' })).toMatchObject({ status: 200 });
  });
});
