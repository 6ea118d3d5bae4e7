// Looks for an event in the chain's logs. Providers differ in how many blocks they search at a time, and say so in errors or by not
// responding in time: so the window shrinks until they respond, and what they took is remembered.
import { type LogFilter, type Logs, readHead, readLogs } from './chain-client.ts';
import { type Rpc, RpcError } from './rpc.ts';

/** Nearly every provider serves this many blocks at a time. */
const WINDOW_BLOCKS = 2_000;
/** The least that a provider is known to serve. */
const WINDOW_BLOCKS_MIN = 10;
const SHRINK_DIVISOR = 4;
/** Weeks of blocks: an event is looked for soon after its chamber has closed. */
const BLOCKS_MAX = 400_000;
const REQUESTS_MAX = 2_000;

export class LogSearch {
  readonly #rpc: Rpc;
  /** What the next search asks for first; at the start the whole chain. */
  #windowBlocks = Number.POSITIVE_INFINITY;

  constructor(rpc: Rpc) {
    this.#rpc = rpc;
  }

  /** Finds an event in all blocks up to now; newest first where the provider limits the range of blocks. */
  async find<Found>(
    contract: Pick<LogFilter, 'address' | 'topics'>,
    find: (logs: Logs) => Found | undefined,
  ): Promise<Found | undefined> {
    const { number: head } = await readHead(this.#rpc);
    let requests = 0;
    for (let toBlock = head; toBlock >= 0 && toBlock > head - BLOCKS_MAX && requests < REQUESTS_MAX; requests++) {
      const fromBlock = Math.max(0, toBlock - this.#windowBlocks + 1);
      const logs = await this.#read({ ...contract, fromBlock, toBlock });
      if (logs === undefined) continue;
      const found = find(logs);
      if (found !== undefined) return found;
      toBlock = fromBlock - 1;
    }
    // A fault that has passed must not slow down all later searches.
    this.#windowBlocks *= SHRINK_DIVISOR;
    return undefined;
  }

  /** undefined where a smaller window is to be tried. */
  async #read(filter: LogFilter): Promise<Logs | undefined> {
    try {
      return await readLogs(this.#rpc, filter);
    } catch (error) {
      const blocks = filter.toBlock - filter.fromBlock + 1;
      if (!(error instanceof RpcError) || blocks <= WINDOW_BLOCKS_MIN) throw error;
      const smaller = Math.max(WINDOW_BLOCKS_MIN, Math.floor(blocks / SHRINK_DIVISOR));
      this.#windowBlocks = Math.min(WINDOW_BLOCKS, smaller);
      return undefined;
    }
  }
}
