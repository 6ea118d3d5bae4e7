// Searches the chain's logs for an event. Providers limit the block range of a request, and reject or time out on larger ones. So the range shrinks
// until the provider responds, and the next search starts with that range.
import { type LogFilter, type Logs, readHead, readLogs } from './chain-client.ts';
import { type Rpc, RpcError } from './rpc.ts';

/** Nearly every provider accepts this range. */
const WINDOW_BLOCKS = 2_000;
/** The smallest limit of a known provider. */
const WINDOW_BLOCKS_MIN = 10;
const SHRINK_DIVISOR = 4;
/** A few weeks of blocks: the relayer searches for an event soon after its chamber has closed. */
const BLOCKS_MAX = 400_000;
const REQUESTS_MAX = 2_000;

export class LogSearch {
  readonly #rpc: Rpc;
  /** The first search tries the whole chain. */
  #windowBlocks = Number.POSITIVE_INFINITY;

  constructor(rpc: Rpc) {
    this.#rpc = rpc;
  }

  /** Searches the newest blocks first. */
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
    // The window grows again, so that a temporary fault does not slow down all later searches.
    this.#windowBlocks *= SHRINK_DIVISOR;
    return undefined;
  }

  /** Returns undefined if the caller should try a smaller window. */
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
