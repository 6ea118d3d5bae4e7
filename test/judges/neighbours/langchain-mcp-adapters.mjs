import assert from 'node:assert/strict';
import { MultiServerMCPClient } from '@langchain/mcp-adapters';

const { BASE_URL, SEAT } = process.env;
const client = new MultiServerMCPClient({
  prefixToolNameWithServerName: true,
  mcpServers: {
    service: { transport: 'http', url: `${BASE_URL}/mcp` },
    seat: { transport: 'stdio', ...JSON.parse(SEAT) },
  },
});
const tools = await client.getTools();
for (const server of ['service', 'seat']) {
  const read = tools.find(({ name }) => name.startsWith(server) && name.endsWith('__read'));
  const result = await read.invoke({ chamberId: 1 });
  assert.match(JSON.stringify(result), /COMMITTED/);
}
await client.close();
console.log(`${tools.length} tools of /mcp and chambers mcp; read`);
