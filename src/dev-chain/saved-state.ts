import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import type { Hex } from 'viem';
import { replaceFile } from '../files/durable-file.ts';
import { type Block, readHead } from '../relayer/chain-client.ts';
import type { Rpc } from '../relayer/rpc.ts';

const DUMPS_MAX = 5;
const decompress = promisify(gunzip);

/**
 * Writes Anvil's state in the format of `anvil --load-state` and returns the hash of the last block; undefined if a new block was mined
 * during every dump. A crash loses the transactions since the last save: the relayer sends them again.
 */
export async function saveState(rpc: Rpc, file: string, head: Block): Promise<Hex | undefined> {
  const { dump, hash } = (await dumpBetweenBlocks(rpc, head)) ?? {};
  if (dump === undefined) return undefined;
  await replaceFile(file, await decompress(Buffer.from(dump.slice(2), 'hex')), { mode: 0o600 });
  return hash;
}

/**
 * Anvil reads blocks before accounts. A block mined in between would leave the dump with an account's change but not its transaction, for
 * example a root in the registry without its event. So a dump is used only if no block was mined meanwhile.
 */
async function dumpBetweenBlocks(
  rpc: Rpc,
  head: Block,
): Promise<{ readonly dump: string; readonly hash: Hex } | undefined> {
  let before = head;
  for (let attempt = 0; attempt < DUMPS_MAX; attempt++) {
    const dump = await rpc.request('anvil_dumpState', []);
    if (typeof dump !== 'string') throw new Error('Anvil returned no state');
    const after = await readHead(rpc);
    if (after.hash === before.hash) return { dump, hash: after.hash };
    before = after;
  }
  return undefined;
}
