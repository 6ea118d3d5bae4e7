// Serves the RPC of a chain without contracts, accounts or transactions.
import { serve } from './serve.ts';

/** Returns the URL of the RPC. The chain id is 31337. */
export function servedChain(): Promise<string> {
  const results: Readonly<Record<string, unknown>> = {
    eth_chainId: '0x7a69',
    eth_getCode: '0x',
    eth_getBalance: '0x0',
    eth_blockNumber: '0x1',
    eth_getBlockByNumber: { number: '0x1', hash: `0x${'44'.repeat(32)}`, timestamp: '0x1', transactions: [] },
  };
  return serve(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    const { id, method } = JSON.parse(body);
    response.setHeader('Content-Type', 'application/json');
    response.end(JSON.stringify({ jsonrpc: '2.0', id, result: results[method] ?? '0x' }));
  });
}
