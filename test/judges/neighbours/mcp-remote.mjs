import assert from 'node:assert/strict';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';

const { BASE_URL, HOME } = process.env;
const client = new Client({ name: 'neighbour', version: '1.0.0' });
const args = ['node_modules/.bin/mcp-remote', `${BASE_URL}/mcp`, '--allow-http', '--transport', 'http-only'];
await client.connect(new StdioClientTransport({ command: process.execPath, args, env: { HOME }, stderr: 'ignore' }));
const { tools } = await client.listTools();
const { structuredContent } = await client.callTool({ name: 'read', arguments: { chamberId: 1 } });
assert.equal(structuredContent.phase, 'COMMITTED');
await client.close();
console.log(`${tools.length} tools of /mcp, for hosts that only speak stdio; read`);
