import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';

const { BASE_URL } = process.env;
const inspect = (...options) => {
  const words = ['node_modules/.bin/mcp-inspector', '--cli', `${BASE_URL}/mcp`, '--transport', 'http', ...options];
  return JSON.parse(execFileSync(process.execPath, words, { encoding: 'utf8' }));
};
const { tools } = inspect('--method', 'tools/list');
const read = inspect('--method', 'tools/call', '--tool-name', 'read', '--tool-arg', 'chamberId=1');
assert.equal(read.structuredContent.phase, 'COMMITTED');
console.log(`${tools.length} tools of /mcp; read`);
