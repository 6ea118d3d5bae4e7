// D7: a request by an unknown key costs no arithmetic on the curve. Before, each had its key decompressed on the main thread,
// 0.78 ms, before anybody asked whether it is registered: the count below was that of the requests.
import { Point } from '@noble/ed25519';
import { expect, it, vi } from 'vitest';
import { House, registrationOf } from '../kit/house.ts';
import { Signer } from '../kit/signer.ts';
import { atEnd } from '../kit/temporary.ts';

it('the curve is checked for registrations alone', async () => {
  const house = new House();
  const decompressing = vi.spyOn(Point, 'fromBytes');
  atEnd(() => decompressing.mockRestore());
  for (let request = 0; request < 50; request++) {
    const by = new Signer();
    const [read, move] = [
      await house.request('GET', '/me', { by }),
      await house.request('POST', '/chambers', { by, body: {} }),
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
  await house.must('POST', '/register', { by, body: registrationOf(by) });
  expect(decompressing).toHaveBeenCalled();
});
