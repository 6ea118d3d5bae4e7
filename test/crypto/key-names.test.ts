import { expect, it } from 'vitest';
import { thumbprintOf } from '../../src/crypto/jwk.ts';
import { fromHex } from '../../src/vocabulary/values.ts';

it('the thumbprint of a key is that of RFC 8037, appendix A.3', () => {
  const publicKey = fromHex('0xd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a');
  expect(thumbprintOf(publicKey)).toBe('kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k');
});
