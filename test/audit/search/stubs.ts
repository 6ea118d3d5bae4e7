// Stubs in the search: the forging service may sign any stub; others may edit, move and copy the stubs that it signed.

import { thumbprintOf } from '../../../src/crypto/jwk.ts';
import { publicKeyOf, signWith } from '../../../src/keys/private-key.ts';
import { canonicalJson } from '../../../src/vocabulary/json.ts';
import { withoutTexts } from '../../../src/vocabulary/texts.ts';
import type { Random } from '../../kit/random.ts';
import type { Json, Line } from '../forge.ts';
import { payloadOf } from '../forgeries.ts';
import { fixedKeys } from '../sample.ts';

const LOG = 'c0ffee00'.repeat(4);
const SEED = fixedKeys(LOG).all('receipts')[0]?.seed as Uint8Array;
const ofKey = (seed: Uint8Array) => {
  const publicKey = publicKeyOf(seed);
  return {
    sign: signWith(seed),
    named: { key: Buffer.from(publicKey).toString('base64url'), keyid: thumbprintOf(publicKey) },
  };
};
const SERVICE = ofKey(SEED);
const FOREIGN = ofKey(new Uint8Array(32).fill(77));

export const isStub = ({ withheld }: Line): boolean => withheld !== undefined;

/** Returns an unsigned stub of the line, whatever its type, with this leaf. */
export function stubOver(line: Line, leaf: string): Line {
  const type = String(line['type']);
  const stated = { at: '2030-01-02T00:00:00.000Z', ...SERVICE.named, leaf, log: LOG, reason: 'law', signature: '' };
  const isSent = !['chamber.joined', 'relay.deploy_submitted', 'idea.deploy_failed'].includes(type);
  const payload = withoutTexts(type, payloadOf(line));
  return { ...line, payload, request: isSent ? null : (line['request'] as Json), withheld: stated };
}

/** Returns the stub with the service's signature over its current statements. */
export function signedStub(line: Line): Line {
  return signedBy(SERVICE, line);
}

function signedBy({ sign, named }: typeof SERVICE, line: Line): Line {
  const { signature: _, ...stated }: Line = { ...(line['withheld'] as Line), ...named };
  const text = `Chamber Coordination Service withheld line\n${canonicalJson({ ...line, withheld: stated })}`;
  return { ...line, withheld: { ...stated, signature: Buffer.from(sign(Buffer.from(text))).toString('base64url') } };
}

/** Changes a value in `withheld`, or signs the stub with a foreign key. */
export function editedStub(line: Line, random: Random): Line {
  const edits: readonly (() => Line)[] = [
    () => ({ leaf: `0x${'ab'.repeat(32)}` }),
    () => ({ log: 'd'.repeat(32) }),
    () => ({ reason: random.pick(['abuse', 'shame']) }),
    () => ({ at: '2030-01-03T00:00:00.000Z' }),
    () => ({ keyid: FOREIGN.named.keyid }),
    () => ({ key: FOREIGN.named.key }),
  ];
  if (random.chance(0.2)) return signedBy(FOREIGN, line);
  return { ...line, withheld: { ...(line['withheld'] as Line), ...random.pick(edits)() } };
}
