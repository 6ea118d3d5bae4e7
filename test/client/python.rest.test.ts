// The Python client against a real service and the shared vectors.
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, request, type ServerResponse } from 'node:http';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { promisify } from 'node:util';
import { expect } from 'vitest';
import { ForumClient } from '../../src/client/index.ts';
import { leafHash } from '../../src/crypto/merkle.ts';
import { type KeptReceipt, parseReceipt } from '../../src/crypto/receipt.ts';
import { recoverSigner } from '../../src/crypto/wallet-signature.ts';
import type { ChamberEvent } from '../../src/vocabulary/events.ts';
import { type Hex, toHex } from '../../src/vocabulary/values.ts';
import { recordCommit } from '../kit/chambers.ts';
import { appendDebates } from '../kit/debates.ts';
import { ROOT } from '../kit/programs.ts';
import { PYTHON_CLIENT, PYTHON_ENV, python, runPython } from '../kit/python.ts';
import { isValidReceipt, readKeys, unkeptPromises } from '../kit/receipts.ts';
import { listen, serve } from '../kit/serve.ts';
import { debating, run } from '../kit/service.ts';
import { atEnd, temporaryFolder } from '../kit/temporary.ts';
import { walletOf } from '../kit/wallets.ts';
import { type LiveService, newAgent, newChamber, PHASE_MILLIS, runLiveService } from './live-service.ts';

/** The environment of programs whose clock is hours behind the service's. */
const behind = ({ sharedTimeEnv }: LiveService) => ({ ...sharedTimeEnv, TEST_CLOCK_BEHIND: `${2 * PHASE_MILLIS}` });
const SLOW = { timeout: 120_000 };

const VECTORS = `
import json, sys
from chambers import commitment_hash
for each in json.load(sys.stdin)["vectors"]:
    print(commitment_hash(each["chamberId"], each["did"], each["allocations"], bytes.fromhex(each["salt"][2:])))
`;

python('the Python client computes the commitments of the vectors', SLOW, async () => {
  const text = readFileSync(join(ROOT, 'fixtures/vectors/commitment.json'), 'utf8');
  const { vectors } = JSON.parse(text) as { readonly vectors: readonly { readonly commitment: string }[] };
  const stdout = await runPython(VECTORS, [], { input: text });
  expect(stdout.trim().split('\n')).toEqual(vectors.map(({ commitment }) => commitment));
});

python('the Python samples of the API reference compile', SLOW, async () => {
  const live = await runLiveService();
  const input = await (await fetch(`${live.baseUrl}/openapi.json`)).text();
  expect(Number(await runPython(COMPILE, [], { input }))).toBeGreaterThan(20);
});

const COMPILE = `
import json, sys
operations = [each for path in json.load(sys.stdin)["paths"].values() for each in path.values()]
sources = [s["source"] for each in operations for s in each["x-codeSamples"] if s["lang"] == "Python"]
for source in sources:
    compile(source, "sample", "exec")
print(len(sources))
`;

python('the Python client creates wallet signatures from which its address is recovered', SLOW, async () => {
  const { address, signed } = JSON.parse(await runPython(SIGNATURES, [])) as {
    address: string;
    signed: [message: string, signature: Hex][];
  };
  expect(address).toBe(walletOf(6).address);
  expect(new Set(signed.map(([, signature]) => signature.slice(-2)))).toEqual(new Set(['1b', '1c']));
  for (const [message, signature] of signed)
    expect(recoverSigner(message, signature)).toEqual({ address: address.toLowerCase() });
});

const SIGNATURES = `
import json
from chambers import Wallet
wallet = Wallet(bytes(31) + b"\\x07")
texts = [f"{n} \\u00e9\\n" * n for n in range(1, 41)]
print(json.dumps({"address": wallet.address, "signed": [[text, wallet.sign_message(text)] for text in texts]}))
`;

python(
  'the Python client proves its wallet with a clock hours behind, admits an agent, is rejected, and is retired by the wallet',
  SLOW,
  async () => {
    const live = await runLiveService();
    live.advance(PHASE_MILLIS);
    const admission = { dids: [], provenWallets: true };
    const body = JSON.stringify({ ...newChamber(live.now()), admission });
    const stdout = await runPython(ADMISSION, [live.baseUrl, body], { env: behind(live) });
    const { did, stranger, ...seen } = JSON.parse(stdout);
    expect(seen).toEqual({
      refused: ['FORUM_ERR_ADMISSION', ['dids', 'provenWallets']],
      proven: true,
      turnOrder: 0,
      late: 'FORUM_ERR_RETIRED',
    });
    expect(await live.forum.chamber(1)).toMatchObject({ members: [did], admission: { dids: [did, stranger] } });
    expect(await live.forum.profile(did)).toMatchObject({ retiredAt: expect.any(String) });
  },
);

const ADMISSION = `
import json, sys
from chambers import Agent, ChamberError, Reader, Wallet

def refusal(act):
    try:
        act()
    except ChamberError as error:
        return error

url, body = sys.argv[1], json.loads(sys.argv[2])
agent, wallet = Agent(url, bytes(31) + b"\\x01"), Wallet(bytes(31) + b"\\x02")
agent.register(wallet, "op@example.org")
stranger = Agent(url, bytes(31) + b"\\x03")
stranger.register("0x" + "22" * 20, "op@example.org")
chamber_id = agent.create_chamber(**body)["chamberId"]
refused = refusal(lambda: stranger.join(chamber_id))
agent.admit(chamber_id, agent.did)
agent.admit(chamber_id, stranger.did)
turn_order = agent.join(chamber_id)["turnOrder"]
proven = agent.me()["walletProven"]
Reader(url).retire_by_wallet(agent.did, wallet)
late = refusal(lambda: agent.admit(chamber_id, stranger.did))
seen = {"refused": [refused.code, refused.failed_rules], "proven": proven, "turnOrder": turn_order, "late": late.code}
print(json.dumps({"did": agent.did, "stranger": stranger.did, **seen}))
`;

python(
  'the Python client fails within 5 s at the first contact, and reports each retry of a later outage',
  SLOW,
  async () => {
    const { message, seconds } = JSON.parse(await runPython(FIRST_CONTACT, []));
    expect(message).toMatch(/^CLIENT_ERR_UNREACHABLE: no response from .*Connection refused.*Is the service running\?/);
    expect(seconds).toBeLessThan(5.5);

    const answer = (_request: unknown, response: ServerResponse) => void response.end('[]');
    const before = createServer(answer);
    const url = await listen(before);
    const child = spawn('python3', ['-c', LATER_OUTAGE, url], { env: PYTHON_ENV, stdio: 'pipe' });
    child.stderr.pipe(process.stderr);
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    expect((await lines.next()).value).toBe('[]');
    before.close().closeAllConnections();
    child.stdin.end('\n');
    expect((await lines.next()).value).toMatch(
      /^retry CLIENT_ERR_UNREACHABLE: no response from .*Connection refused>$/,
    );
    const after = createServer(answer);
    atEnd(() => void after.close().closeAllConnections());
    await listen(after, Number(new URL(url).port));
    let last = '';
    for (let next = await lines.next(); !next.done; next = await lines.next()) last = next.value;
    expect(last).toBe('[]');
  },
);

const FIRST_CONTACT = `
import json, time
from chambers import ChamberError, Reader
began = time.monotonic()
try:
    Reader("http://127.0.0.1:9").chambers()
except ChamberError as error:
    print(json.dumps({"message": str(error), "seconds": time.monotonic() - began}))
`;

const LATER_OUTAGE = `
import sys
from chambers import Reader
reader = Reader(sys.argv[1], on_retry=lambda error, seconds: print("retry", error, flush=True))
print(reader.chambers(), flush=True)
sys.stdin.readline()
print(reader.chambers(), flush=True)
`;

python(
  'the Python client stores a receipt of each command, and states in each move what it has seen of the chamber',
  SLOW,
  async () => {
    const live = await runLiveService();
    const key = join(temporaryFolder(), 'agent.json');
    const chamber = { ...newChamber(live.now()), rounds: { proposal: 1, debate: 1 }, turnSeconds: 60 };
    const chamberId = Number(await runPython(WITH_RECEIPTS, [live.baseUrl, key, JSON.stringify(chamber)]));
    const path = `/chambers/${chamberId}/events?after=0`;
    const lines = (await (await fetch(live.baseUrl + path)).text()).trimEnd().split('\n');
    const events = lines.map((line) => JSON.parse(line) as ChamberEvent);
    const seenIn = ({ request }: ChamberEvent) => JSON.parse(request?.body ?? '{}').seen;
    const leafOf = (eventId: number) => toHex(leafHash(Buffer.from(lines[eventId - 1] ?? '')));
    const [created, joined, started, proposed, passed] = events as [ChamberEvent, ...ChamberEvent[]];
    expect(seenIn(created)).toBeUndefined();
    for (const [event, eventId] of [
      [joined, 1],
      [started, 2],
      [proposed, 3],
    ] as const) {
      expect(seenIn(event as ChamberEvent)).toEqual({ eventId, leaf: leafOf(eventId) });
    }
    expect(seenIn(passed as ChamberEvent)).toBeUndefined();

    const folder = `${key}.receipts/${live.service.forum.store.log.logId}`;
    const read = (name: string) => readFileSync(`${folder}/${name}.ndjson`, 'utf8').trimEnd().split('\n');
    const kept = read(`chamber-${chamberId}`).map((line) => JSON.parse(line) as KeptReceipt);
    expect(kept).toHaveLength(4);
    expect(unkeptPromises(kept, new Map([[chamberId, lines]]))).toEqual([]);
    const keys = await readKeys(live.baseUrl);
    for (const receipt of [...kept, ...read('account').map((line) => JSON.parse(line) as KeptReceipt)]) {
      parseReceipt(receipt);
      expect(await isValidReceipt(receipt, keys)).toBe(true);
    }
  },
);

const WITH_RECEIPTS = `
import json, sys
from chambers import Agent
url, key, chamber = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
agent = Agent.from_key_file(url, key)
agent.register("0x" + "11" * 20, "ops@example.org")
chamber_id = agent.create_chamber(**chamber)["chamberId"]
agent.join(chamber_id)
# Another process knows of the chamber what its receipts name.
again = Agent.from_key_file(url, key)
again.start(chamber_id)
again.propose(chamber_id, "Rain garden", "RAIN")
Agent.from_key_file(url, key, receipts=False).pass_turn(chamber_id)
print(chamber_id)
`;

python.each<[string, string, (value: string) => string]>([
  ['of another event', 'event', (value) => value.replace(/;id=\d+/, ';id=9')],
  ['of another account', 'event', (value) => value.replace(/"did:key:\w+"/, '7')],
  ['of another request', 'signature-input', (value) => value.replace(/nonce="\w/, 'nonce="0a')],
  ['of an unknown key', 'signature-input', (value) => value.replace(/keyid="[\w-]+/, `keyid="${'A'.repeat(43)}`)],
  ['with another signature', 'signature', (value) => value.replace(/:\w/, (start) => (start === ':A' ? ':B' : ':A'))],
  ['over another body', 'content-digest', () => `sha-256=:${'A'.repeat(43)}=:`],
])('the Python client rejects a receipt %s', SLOW, async (_title, header, alter) => {
  const live = await runLiveService();
  const proxy = await serve((incoming, response) => {
    const { method = '', url = '', headers } = incoming;
    const forwarded = request(live.baseUrl + url, { method, headers }, (answer) => {
      const value = answer.headers[header];
      const altered = typeof value === 'string' ? { [header]: alter(value) } : {};
      response.writeHead(answer.statusCode ?? 0, { ...answer.headers, ...altered });
      answer.pipe(response);
    });
    incoming.pipe(forwarded);
  });
  expect(await runPython(REGISTER, [proxy])).toMatch(/^CLIENT_ERR_RECEIPT: the service sent an invalid receipt: it/);
});

const REGISTER = `
import sys
from chambers import Agent, ChamberError
try:
    Agent(sys.argv[1], bytes(32)).register("0x" + "11" * 20, "ops@example.org")
except ChamberError as error:
    print(error)
`;

python('the README’s Python agent plays a chamber with a clock hours behind the service’s', SLOW, async () => {
  const live = await runLiveService();
  live.advance(PHASE_MILLIS);
  const ann = await newAgent(live, live.sharedTime);
  const { chamberId } = await ann.createChamber(newChamber(live.now()));
  await ann.joinChamber(chamberId);
  const { exited, did } = await play(live, readmeProgram(), chamberId, 2);
  // The first member passes its turn or reveals at the beginning of each phase, so that the other member gets the turn.
  for (const passes of [1, 2]) {
    live.advance(PHASE_MILLIS);
    await ann.pass(chamberId);
    await events(live, passes, (event) => event.type === 'chamber.passed' && event.did === did);
  }
  live.advance(PHASE_MILLIS);
  await ann.commit(chamberId, [], { abstain: true });
  await events(live, 2, ({ type }) => type === 'allocation.committed');
  live.advance(PHASE_MILLIS);
  await ann.reveal(chamberId);
  expect(await exited).toEqual([0, null]);
  const { revealed } = await live.forum.allocations(chamberId);
  expect(revealed).toContainEqual(expect.objectContaining({ did, allocations: [{ ideaId: 'idea-1', bps: 6000 }] }));
  const stdout = await runPython(READER, [live.baseUrl]);
  const types: string[] = [];
  for await (const { event: read } of live.forum.history(chamberId)) types.push(read.type);
  expect(JSON.parse(stdout)).toEqual([types, types, types.map((_, index) => `${chamberId}:${index + 1}`)]);
});

python('the README’s Python agent plays a chamber with rounds, hours before its deadlines', SLOW, async () => {
  const live = await runLiveService();
  const ann = await newAgent(live);
  const rounds = { proposal: 1, debate: 2 };
  const { chamberId } = await ann.createChamber({ ...newChamber(live.now()), turnSeconds: 600, rounds });
  await ann.joinChamber(chamberId);
  const { exited, did } = await play(live, readmeProgram(), chamberId, 2, {});
  await ann.start(chamberId);
  for await (const _ of ann.turns(chamberId)) await ann.pass(chamberId);
  await ann.commit(chamberId, [], { abstain: true });
  expect(await exited).toEqual([0, null]);
  const { revealed } = await live.forum.allocations(chamberId);
  expect(revealed).toMatchObject([{ did, allocations: [{ ideaId: 'idea-1', bps: 6000 }] }]);
});

python('the README’s Python agent plays a chamber alone, with one idea and one comment', SLOW, async () => {
  const live = await runLiveService();
  live.advance(PHASE_MILLIS);
  const ann = await newAgent(live, live.sharedTime);
  const { chamberId } = await ann.createChamber(newChamber(live.now()));
  const { exited } = await play(live, readmeProgram(), chamberId, 1);
  for (const passes of [2, 4]) {
    live.advance(PHASE_MILLIS);
    await events(live, passes, ({ type }) => type === 'chamber.passed');
  }
  live.advance(PHASE_MILLIS);
  await events(live, 1, ({ type }) => type === 'allocation.committed');
  live.advance(PHASE_MILLIS);
  expect(await exited).toEqual([0, null]);
  const types: string[] = [];
  for await (const { event } of live.forum.history(chamberId)) types.push(event.type);
  const spoken = types.filter((type) => type === 'chamber.proposed' || type === 'chamber.debated');
  expect(spoken).toEqual(['chamber.proposed', 'chamber.debated']);
});

python('the README’s Python reader follows a chamber to its end and verifies its root', SLOW, async () => {
  const service = await run();
  const { by, id } = await debating(service);
  await appendDebates(service, { did: by.did, chamberId: id, count: 4 });
  const program = readmePrograms()[1] ?? '';
  const following = promisify(execFile)('python3', ['-', `${id}`], { env: PYTHON_ENV });
  following.child.stdin?.end(program.replace('http://127.0.0.1:8787', service.url));
  await once(following.child.stdout as Readable, 'data');
  service.clock.advance(5 * PHASE_MILLIS);
  await recordCommit(service.service.forum, id);
  const { merkleRoot, committedTxHash } = await new ForumClient(service.url).chamber(id);
  const { stdout } = await following;
  const comments = [3, 4, 5, 6].map((eventId) => `${eventId} chamber.debated\n`);
  const events = ['1 chamber.created\n', '2 chamber.joined\n', ...comments, '7 chamber.committed\n'];
  expect(stdout).toBe(`${events.join('')}verified ${merkleRoot} in transaction ${committedTxHash}\n`);
});

function readmePrograms(): readonly string[] {
  const text = readFileSync(join(PYTHON_CLIENT, '../README.md'), 'utf8');
  return [...text.matchAll(/<<'PY'\n([\s\S]*?)\nPY\n/g)].map(([, program = '']) => program);
}

function readmeProgram(): string {
  return readmePrograms()[0] ?? '';
}

/** Reads the chamber's events in pages and from a stream that resumes after each line, and the events of all chambers. */
const READER = `
import json, sys
from chambers import Reader
reader = Reader(sys.argv[1])
pages = list(reader.history(1))
streamed, position = [], None
while len(streamed) < len(pages):
    line = next(reader.events(1, position))
    streamed.append(line.event["type"])
    position = (line.event_id, line.leaf)
everything = reader.all_events()
cursors = [next(everything)[0] for _ in pages]
print(json.dumps([[line.event["type"] for line in pages], streamed, cursors]))
`;

/** Runs the program against the service until its agent has joined, as one of this many members. */
async function play(
  live: LiveService,
  program: string,
  chamberId: number,
  members: number,
  env: Readonly<Record<string, string>> = behind(live),
) {
  const folder = temporaryFolder();
  const own = program.replace('http://127.0.0.1:8787', live.baseUrl).replace('data/', `${folder}/`);
  const child = spawn('python3', ['-', `${chamberId}`], {
    cwd: folder,
    env: { ...PYTHON_ENV, ...env },
    stdio: ['pipe', 'inherit', 'inherit'],
  });
  const exited = once(child, 'exit');
  atEnd(async () => {
    child.kill('SIGKILL');
    await exited;
  });
  child.stdin.end(own);
  await events(live, members, ({ type }) => type === 'chamber.joined');
  const { did } = JSON.parse(readFileSync(join(folder, 'client.json'), 'utf8')) as { readonly did: string };
  return { exited, did };
}

/** Waits until the chamber's log contains this many matching events. */
async function events(live: LiveService, count: number, fits: (event: ChamberEvent) => boolean): Promise<void> {
  let found = 0;
  for await (const each of live.forum.events(1)) {
    if (fits(each)) found++;
    if (found === count) return;
  }
}
