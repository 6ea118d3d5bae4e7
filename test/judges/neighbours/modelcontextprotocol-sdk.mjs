import assert from 'node:assert/strict';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const { BASE_URL, SEAT } = process.env;
const counts = [];
for (const transport of [
  new StreamableHTTPClientTransport(new URL('/mcp', BASE_URL)),
  new StdioClientTransport(JSON.parse(SEAT)),
]) {
  const client = new Client({ name: 'neighbour', version: '1.0.0' });
  await client.connect(transport);
  const { tools } = await client.listTools();
  const { structuredContent } = await client.callTool({ name: 'read', arguments: { chamberId: 1 } });
  assert.equal(structuredContent.phase, 'COMMITTED');
  counts.push(tools.length);
  await client.close();
}
console.log(`${counts.join(' and ')} tools of /mcp and of chambers mcp; read`);
