// The development chain's state on disk: replaced whole, so a reader finds the old state or the new one, never a torn one.
import { open, rename } from 'node:fs/promises';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import type { Rpc } from './rpc.ts';

const toText = promisify(gunzip);

/**
 * Writes the state to `file`, in the form of `anvil --load-state`. A crash before the next time loses the transactions
 * since this one: the relayer sends them again.
 */
export async function saveChainState(rpc: Rpc, file: string): Promise<void> {
  const dump = await rpc.request('anvil_dumpState', []);
  if (typeof dump !== 'string') throw new Error('Anvil dumps no state');
  const draft = `${file}.new`;
  const handle = await open(draft, 'w', 0o600);
  try {
    await handle.writeFile(await toText(Buffer.from(dump.slice(2), 'hex')));
    await handle.sync();
  } finally {
    await handle.close();
  }
  await rename(draft, file);
}
