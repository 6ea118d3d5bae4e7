// Gateways, portals and clocks between the Python client and its service. A function here responds in place of the service.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { expect } from 'vitest';
import { python, runPython } from '../kit/python.ts';
import { serve } from '../kit/serve.ts';

const SLOW = { timeout: 60_000 };
const JSON_TYPE = { 'Content-Type': 'application/json' };
const NDJSON_TYPE = { 'Content-Type': 'application/x-ndjson' };
const PORTAL = '<html>\nAccept our terms\n</html>\n';

interface Sent {
  readonly method: string;
  readonly path: string;
  readonly body: string;
  readonly signature: string | undefined;
}

type Respond = (response: ServerResponse) => void;

const respond = (status: number, body: unknown, headers: Record<string, string> = {}): Respond => {
  return (response) => void response.writeHead(status, { ...JSON_TYPE, ...headers }).end(JSON.stringify(body));
};
const portal: Respond = (response) => void response.writeHead(200, { 'Content-Type': 'text/html' }).end(PORTAL);
const passed = respond(200, { eventId: 7 });

/** Responds to commands in the given order and repeats the last response forever; responds to reads with `read`. */
async function service(commands: readonly Respond[], read: (path: string) => Respond = () => respond(200, [])) {
  const sent: Sent[] = [];
  let count = 0;
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    const { method = '', url = '', headers } = request;
    const body = await text(request);
    if (method !== 'GET') sent.push({ method, path: url, body, signature: String(headers['signature']) });
    const last = commands.length - 1;
    (method === 'GET' ? read(url) : (commands[Math.min(count++, last)] as Respond))(response);
  };
  return { url: await serve((request, response) => void answer(request, response)), sent };
}

const HEAD = `
import json, sys, chambers
from chambers import Agent, ChamberError, Reader
def outcome(act):
    try:
        return act()
    except ChamberError as error:
        return error.code
`;
const SHORT_BACKOFF = `${HEAD}chambers.BACKOFF_SECONDS = (0.01, 0.02)\n`;

python('the Python client waits before a retry even if the response asks for no wait', SLOW, async () => {
  let reads = 0;
  const { url } = await service([], () => {
    const isFirst = reads++ === 0;
    return isFirst ? respond(200, []) : respond(429, { error: 'FORUM_ERR_RATE', detail: '' }, { 'Retry-After': '0' });
  });
  const program = `${HEAD}reader = Reader(sys.argv[1], patience=2); reader.chambers(); print(outcome(reader.chambers))`;
  expect(await runPython(program, [url])).toBe('FORUM_ERR_RATE\n');
  expect(reads).toBeLessThan(10);
});

python(
  'the Python client signs once more for two nodes with different clocks, and then reports the error',
  SLOW,
  async () => {
    const age = (minutes: number): Respond => {
      const serviceTime = new Date(Date.now() + minutes * 60_000).toISOString();
      return respond(401, { error: 'FORUM_ERR_SIGNATURE', detail: 'age', step: 'age', serviceTime });
    };
    const nodes = Array.from({ length: 50 }, (_, index) => age(index % 2 === 0 ? 10 : -10));
    const { url, sent } = await service(nodes);
    const program = `${SHORT_BACKOFF}print(outcome(lambda: Agent(sys.argv[1], bytes(32), receipts=False).pass_turn(1)))`;
    expect(await runPython(program, [url])).toBe('FORUM_ERR_SIGNATURE\n');
    expect(sent).toHaveLength(2);
  },
);

python(
  'the Python client retries a move with an unknown outcome with the same bytes, beyond the patience',
  SLOW,
  async () => {
    const gateway = respond(502, 'bad gateway');
    const unconfirmed = respond(503, { error: 'FORUM_ERR_UNAVAILABLE', detail: 'no response', mayBeAccepted: true });
    const { url, sent } = await service([unconfirmed, ...Array.from({ length: 39 }, () => gateway), portal, passed]);
    const program = `${SHORT_BACKOFF}print(outcome(lambda: Agent(sys.argv[1], bytes(32), patience=0.1).pass_turn(1)))`;
    expect(await runPython(program, [url])).toBe("{'eventId': 7}\n");
    expect(sent).toHaveLength(42);
    expect(new Set(sent.map(({ signature }) => signature)).size).toBe(1);
  },
);

python('the Python client sends no command to a portal at the first contact', SLOW, async () => {
  const { url, sent } = await service([portal], () => portal);
  const program = `${SHORT_BACKOFF}print(outcome(lambda: Agent(sys.argv[1], bytes(32)).pass_turn(1)))`;
  expect(await runPython(program, [url])).toBe('CLIENT_ERR_ANSWER\n');
  expect(sent).toEqual([]);
});

python('the Python client accepts neither a portal’s page nor a truncated page as lines of a log', SLOW, async () => {
  const cut: Respond = (response) => {
    response.writeHead(200, { ...NDJSON_TYPE, 'Content-Length': '1000' }).write('{"eventId":1,"chamberId":1}\n');
    setTimeout(() => response.destroy(), 50);
  };
  const empty: Respond = (response) => void response.writeHead(200, NDJSON_TYPE).end();
  const pages = [portal, cut, empty];
  const read = (path: string) => (path.includes('/events') ? (pages.shift() as Respond) : respond(200, []));
  const { url } = await service([], read);
  const program = `${SHORT_BACKOFF}reader = Reader(sys.argv[1]); reader.chambers(); print(outcome(lambda: list(reader.history(1))))`;
  expect(await runPython(program, [url])).toBe('[]\n');
  expect(pages).toEqual([]);
});

python('the Python client requires an explicit abstention before it stores or sends anything', SLOW, async () => {
  const view = { ideas: [{ ideaId: 'idea-1' }], now: new Date().toISOString() };
  const { url, sent } = await service([passed], () => respond(200, view));
  const program = `${SHORT_BACKOFF}
agent = Agent(sys.argv[1], bytes(32))
for allocations, abstain in ([], False), ([{"idea_id": "idea-1", "bps": 0}], False), ([{"ideaId": "idea-1", "bps": 1}], True):
    try:
        agent.commit(1, allocations, abstain)
    except ValueError as error:
        print(error)
`;
  const lines = (await runPython(program, [url])).trimEnd().split('\n');
  expect(lines).toEqual([
    expect.stringMatching(/^nothing is allocated/),
    expect.stringMatching(/^nothing is allocated/),
    expect.stringMatching(/^abstain=True allows no allocations/),
  ]);
  expect(sent).toEqual([]);
});

python('the Python client waits for an outcome as the service asks, but no longer than the timeout', SLOW, async () => {
  const answers: Respond[] = [
    respond(409, { error: 'FORUM_ERR_CONFLICT', detail: 'it waits for its root' }, { 'Retry-After': '1' }),
    respond(200, { chamberId: 1 }),
    respond(409, { error: 'FORUM_ERR_CONFLICT', detail: 'it waits for its root' }, { 'Retry-After': '30' }),
  ];
  const { url } = await service([], () => (answers.length > 1 ? answers.shift() : answers[0]) as Respond);
  const program = `${HEAD}import time
reader, started_at = Reader(sys.argv[1]), time.monotonic()
print(reader.outcome(1, wait=True), 1 <= time.monotonic() - started_at < 10)
print(outcome(lambda: reader.outcome(1, wait=True, timeout=5)), time.monotonic() - started_at < 10)
try:
    reader.outcome(1)
except ChamberError as error:
    print(error.code, error.retry_after)
`;
  const lines = ["{'chamberId': 1} True", 'FORUM_ERR_CONFLICT True', 'FORUM_ERR_CONFLICT 30.0', ''];
  expect(await runPython(program, [url])).toBe(lines.join('\n'));
});

python(
  'the Python client accepts argument names in both styles, and leaves dictionaries in values unchanged',
  SLOW,
  async () => {
    const { url, sent } = await service([passed]);
    const program = `${SHORT_BACKOFF}
agent = Agent(sys.argv[1], bytes(32), receipts=False)
agent.debate(1, "So be it", idea_id="idea-1", refinement={"cost_per_day": 2})
agent.debate(1, "So be it", ideaId="idea-1")
agent.create_chamber(name="Tea", turn_seconds=60, minBackersForGraduation=2)
try:
    agent.debate(1, "Which one?", idea_id="idea-1", ideaId="idea-2")
except ValueError as error:
    print(error)
`;
    expect(await runPython(program, [url])).toBe("an argument is given twice: ['ideaId', 'idea_id']\n");
    expect(sent.map(({ body }) => JSON.parse(body))).toEqual([
      { comment: 'So be it', ideaId: 'idea-1', refinement: { cost_per_day: 2 } },
      { comment: 'So be it', ideaId: 'idea-1' },
      { name: 'Tea', turnSeconds: 60, minBackersForGraduation: 2 },
    ]);
  },
);
