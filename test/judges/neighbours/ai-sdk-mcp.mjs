import assert from 'node:assert/strict';
import { createMCPClient } from '@ai-sdk/mcp';
import { Experimental_StdioMCPTransport as StdioTransport } from '@ai-sdk/mcp/mcp-stdio';

const { BASE_URL, SEAT } = process.env;
const counts = [];
for (const transport of [{ type: 'http', url: `${BASE_URL}/mcp` }, new StdioTransport(JSON.parse(SEAT))]) {
  const client = await createMCPClient({ transport });
  const tools = await client.tools();
  const result = await tools.read.execute({ chamberId: 1 }, { toolCallId: 'one', messages: [] });
  assert.equal(JSON.parse(result.content[0].text).phase, 'COMMITTED');
  counts.push(Object.keys(tools).length);
  await client.close();
}
console.log(`${counts.join(' and ')} tools of /mcp and of chambers mcp; read`);
