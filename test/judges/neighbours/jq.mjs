import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';

const { BASE_URL, LINES } = process.env;
const shell = (command) => execFileSync('bash', ['-o', 'pipefail', '-c', command], { encoding: 'utf8' }).trim();
const query = 'jq -r \'select(.type == "chamber.joined") | .did\'';
const pages = shell(`curl -sSf '${BASE_URL}/chambers/1/events' | ${query}`);
const stream = `curl -sSfN -H 'Accept: text/event-stream' '${BASE_URL}/chambers/1/stream?after=0&end=settled'`;
assert.equal(shell(`${stream} | sed -n 's/^data: //p' | ${query}`), pages);
assert.equal(shell(`curl -sSf '${BASE_URL}/chambers/1/events' | jq -c .eventId | tail -1`), LINES);
console.log(`${pages.split('\n').length} members from NDJSON and from server-sent events`);
