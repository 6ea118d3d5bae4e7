// A restored copy is a new log, but its stubs name the original log. The service signs them again before it serves, so that readers need
// to know only one log.
import { restate } from '../crypto/stub.ts';
import { signWith } from '../keys/private-key.ts';
import type { ServiceKeys } from '../keys/service-keys.ts';
import type { Store } from '../log/store.ts';
import { fromLine } from '../vocabulary/events.ts';
import type { Millis } from '../vocabulary/values.ts';

/** Signs each stub with its original key, or with the current key if the original is lost. Resolves to the number of replaced stubs. */
export function restateStubs(
  store: Pick<Store, 'log' | 'withholding'>,
  keys: ServiceKeys,
  at: Millis,
): Promise<number> {
  const known = keys.all('receipts');
  return store.withholding.restate((stub) => {
    const keyid = fromLine(stub).withheld?.keyid;
    const key = known.find(({ thumbprint }) => thumbprint === keyid) ?? keys.current('receipts', at);
    const { publicKey, seed } = key;
    return restate(stub, { at, log: store.log.logId, key: { publicKey, sign: signWith(seed) } });
  });
}
