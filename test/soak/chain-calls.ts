// Makes JSON-RPC calls to the development chain in addition to the service's, to reach a given number.
import { Agent as Connections } from 'node:http';
import { ForumClient } from '../../src/client/index.ts';
import { fetchOver } from './http.ts';
import { inParallel } from './parallel.ts';

const CALLS_AT_ONCE = 8;
const CALL_MS_MAX = 15_000;
const READ_HEAD = { jsonrpc: '2.0', id: 1, method: 'eth_getBlockByNumber', params: ['latest', false] };

export class ChainCalls {
  readonly #rpcUrl: string;
  #own = 0;
  /** The number of calls, including the service's. */
  total = 0;

  private constructor(rpcUrl: string) {
    this.#rpcUrl = rpcUrl;
  }

  static async open(serviceUrl: string): Promise<ChainCalls> {
    const { chain } = await new ForumClient(serviceUrl).health();
    if (chain?.rpcUrl === undefined) throw new Error('GET /health does not name a development chain');
    return new ChainCalls(chain.rpcUrl);
  }

  /** Makes the missing calls up to this number, and returns the new total. */
  async complete(wanted: number, byService: number): Promise<number> {
    const connections = new Connections({ keepAlive: true });
    const fetch = fetchOver(connections);
    const init = { method: 'POST', body: JSON.stringify(READ_HEAD), headers: { 'content-type': 'application/json' } };
    await inParallel(CALLS_AT_ONCE, wanted - byService - this.#own, async () => {
      const response = await fetch(this.#rpcUrl, { ...init, signal: AbortSignal.timeout(CALL_MS_MAX) }).catch(
        (cause) => {
          throw new Error('the chain did not respond', { cause });
        },
      );
      await response.text();
      this.#own++;
    });
    connections.destroy();
    this.total = byService + this.#own;
    return this.total;
  }
}
