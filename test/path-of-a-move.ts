// Reports the number of functions and files of this project that one propose enters on the main thread, from the socket to its
// response and to a stream consumer: `node test/path-of-a-move.ts`. A report, not a test: the path should stay short, but a
// needed step is not a fault.
import { Session } from 'node:inspector/promises';
import { pathToFileURL } from 'node:url';
import { WebSocket } from 'ws';
import { passing } from './kit/clock.ts';
import { openService } from './kit/open-service.ts';
import { Signer } from './kit/signer.ts';

const MINUTE_MS = 60_000;
/** The time for work that follows a response, such as closing connections of the warm-up. */
const SETTLE_MS = 300;

const ROOT = pathToFileURL(new URL('..', import.meta.url).pathname).href;
let now = Date.now();
const service = await openService({ NODE_ENV: 'test' }, { clock: passing(() => now) });

async function post(path: string, body: object, by?: Signer): Promise<Record<string, unknown>> {
  const text = JSON.stringify(body);
  const signature = by?.sign({ method: 'POST', url: service.url + path, body: text, created: Math.floor(now / 1000) });
  const headers = { 'content-type': 'application/json', ...signature };
  const response = await fetch(service.url + path, { method: 'POST', headers, body: text });
  if (response.status !== 200) throw new Error(`POST ${path}: ${response.status} ${await response.text()}`);
  return (await response.json()) as Record<string, unknown>;
}

const agent = new Signer();
const { pubkeyHex } = agent;
const walletAddress = `0x${'11'.repeat(20)}`;
await post('/register', { pubkeyHex, walletAddress, operatorEmail: 'a@example.org', personality: {} });
const [lobby, proposal, debate, commit, reveal] = [1, 2, 3, 4, 5].map((end) =>
  new Date(now + end * MINUTE_MS).toISOString(),
);
const deadlines = {
  lobbyDeadline: lobby,
  proposalDeadline: proposal,
  debateDeadline: debate,
  allocateCommitDeadline: commit,
  allocateRevealDeadline: reveal,
};
const { chamberId } = await post('/chambers', { name: 'Test', ...deadlines }, agent);
await post(`/chambers/${chamberId}/join`, {}, agent);
now += MINUTE_MS;

const consumer = new WebSocket(`${service.url.replace('http', 'ws')}/chambers/${chamberId}/stream?after=0`);
let received = 0;
consumer.on('message', () => {
  received++;
});
/** The number of events after the creation and the join. */
let events = 2;
async function propose(): Promise<void> {
  const ticker = `IDEA${++events}`;
  await post(`/chambers/${chamberId}/propose`, { name: 'Idea', ticker, description: '' }, agent);
  while (received < events) await new Promise((resolve) => consumer.once('message', resolve));
}
const profiler = new Session();
profiler.connect();
await profiler.post('Profiler.enable');
await profiler.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
/** Returns the names of the functions that the proposal entered, by file and by position in the file. */
async function enteredByAnother(): Promise<Map<string, Map<number, string>>> {
  // Coverage counts from the last time that it was taken.
  await profiler.post('Profiler.takePreciseCoverage');
  await propose();
  const { result } = await profiler.post('Profiler.takePreciseCoverage');
  const entered = new Map<string, Map<number, string>>();
  for (const { url, functions } of result) {
    const path = url.startsWith(ROOT) ? url.slice(ROOT.length) : '';
    if (!/^(dist\/)?(src|projections)\//.test(path)) continue;
    const names = new Map<number, string>();
    for (const { functionName, ranges } of functions) {
      const [{ startOffset, count } = { startOffset: 0, count: 0 }] = ranges;
      const isModule = functionName === '' && startOffset === 0;
      if (!isModule && count > 0) names.set(startOffset, functionName || '(anonymous)');
    }
    if (names.size > 0) entered.set(path, names);
  }
  return entered;
}

// node:crypto verifies until the thread with libsodium is ready.
while (!(await enteredByAnother()).has('src/verifier/sodium-thread.ts'));
await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
// Functions that only some proposals enter are other work, such as a round of the publisher.
const [first, ...others] = [await enteredByAnother(), await enteredByAnother(), await enteredByAnother()];
let functions = 0;
let files = 0;
for (const [path, names] of [...(first ?? [])].sort(([one], [other]) => (one < other ? -1 : 1))) {
  const always = [...names].filter(([offset]) => others.every((entered) => entered.get(path)?.has(offset)));
  if (always.length === 0) continue;
  files++;
  functions += always.length;
  console.log(`${String(always.length).padStart(3)}  ${path}  ${always.map(([, name]) => name).join(' ')}`);
}
console.log(`one propose enters ${functions} functions in ${files} files`);
consumer.terminate();
await service.stop();
process.exit();
