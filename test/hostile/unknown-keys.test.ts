// A request with an unknown key costs no curve arithmetic, because the service first checks whether the key is registered.
import { Point } from '@noble/ed25519';
import { expect, it, vi } from 'vitest';
import { Signer } from '../kit/signer.ts';
import { atEnd } from '../kit/temporary.ts';
import { registrationOf, TestService } from '../kit/test-service.ts';

it('only registrations check the key’s point on the curve', async () => {
  const service = new TestService();
  const decompressing = vi.spyOn(Point, 'fromBytes');
  atEnd(() => decompressing.mockRestore());
  for (let request = 0; request < 50; request++) {
    const by = new Signer();
    const [read, move] = [
      await service.request('GET', '/me', { by }),
      await service.request('POST', '/chambers', { by, body: {} }),
    ];
    for (const { status, body } of [read, move]) {
      expect({ status, detail: body.detail }).toEqual({
        status: 401,
        detail: expect.stringMatching(/^registration: /),
      });
    }
  }
  expect(decompressing).not.toHaveBeenCalled();
  const by = new Signer();
  await service.must('POST', '/register', { by, body: registrationOf(by) });
  expect(decompressing).toHaveBeenCalled();
});
