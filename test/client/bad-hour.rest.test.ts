// The JavaScript client, the Python client and the command line play whole chambers while a proxy cuts connections, delays responses and
// responds in place of the service, and the disk of the key file is read-only, full, and normal again.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse, request as send } from 'node:http';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { buffer, text } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { Agent, ClientError, ForumClient } from '../../src/client/index.ts';
import { CLI } from '../kit/programs.ts';
import { hasPython, PYTHON_ENV } from '../kit/python.ts';
import { Random } from '../kit/random.ts';
import { listen } from '../kit/serve.ts';
import { fill } from '../kit/small-file-system.ts';
import { atEnd, smallDisk } from '../kit/temporary.ts';
import { type LiveService, newAgent, newChamber, PHASE_MILLIS, REGISTRATION, runLiveService } from './live-service.ts';

const SEED = Number(process.env['BAD_HOUR_SEED'] ?? Date.now());

/** Half of all requests meet a fault, either before they reach the service or in place of its response. */
async function openBadProxy(live: LiveService): Promise<string> {
  const random = new Random(SEED);
  const server = createServer(async (incoming: IncomingMessage, response: ServerResponse) => {
    const { method, url = '/', headers } = incoming;
    const body = await buffer(incoming);
    const fault = random.chance(0.5) ? random.pick(FAULTS) : undefined;
    if (fault === 'lost request') return void response.destroy();
    if (fault === 'refused') return void response.writeHead(503, { 'Retry-After': '0' }).end('<html>busy</html>');
    if (fault === 'portal') return void response.writeHead(200, HTML).end('<html>\nAccept our terms\n</html>\n');
    if (fault === 'delay') await new Promise((resolve) => setTimeout(resolve, 100));
    const forwarding = send(live.baseUrl + url, { method, headers }).end(body);
    const [answer] = (await once(forwarding, 'response')) as [IncomingMessage];
    const content = await buffer(answer);
    if (fault === 'lost response') return void response.destroy();
    if (fault === 'gateway') return void response.writeHead(503).end();
    if (fault === 'portal after it') return void response.writeHead(200, HTML).end('<html>\nYou are online\n</html>\n');
    const { 'transfer-encoding': _, ...kept } = answer.headers;
    response.writeHead(answer.statusCode ?? 500, { ...kept, 'content-length': content.length });
    if (fault === 'cut response')
      return void response.write(content.subarray(0, content.length / 2), () => response.destroy());
    response.end(content);
  });
  server.on('clientError', (_error, socket) => void socket.destroy());
  atEnd(() => void server.close().closeAllConnections());
  return await listen(server);
}

const HTML = { 'Content-Type': 'text/html' };
const FAULTS = [
  ...(['lost request', 'refused', 'portal', 'delay'] as const),
  ...(['lost response', 'gateway', 'portal after it', 'cut response'] as const),
];

type Step = readonly [name: string, ...rest: readonly string[]];

/** Makes one move for the agent of the key file; rejects only if nothing was sent. */
interface Player {
  readonly play: (step: Step) => Promise<void>;
}

class NothingSent extends Error {}

function javaScriptPlayer(url: string, keyFile: string): Player {
  let agent: Agent | undefined;
  const forum = new ForumClient(url, { patienceMillis: 120_000, onWarning: () => {} });
  return {
    play: async ([name, chamberId]) => {
      try {
        agent ??= await Agent.fromKeyFile(forum, keyFile);
        const id = Number(chamberId);
        if (name === 'register') await agent.register(REGISTRATION);
        if (name === 'join') await agent.joinChamber(id);
        if (name === 'propose') await agent.propose(id, { name: 'Rain', ticker: 'RAIN' });
        if (name === 'debate') await agent.debate(id, { comment: 'Costs come first.' });
        if (name === 'pass') await agent.pass(id);
        if (name === 'commit') await agent.commit(id, [{ ideaId: 'idea-1', bps: 6_000 }]);
        if (name === 'reveal') await agent.reveal(id, { trustService: true });
      } catch (error) {
        if (error instanceof ClientError && error.code === 'CLIENT_ERR_STORAGE') throw new NothingSent(error.detail);
        throw error;
      }
    },
  };
}

const PYTHON = `
import json, sys
from chambers import Agent, ChamberError
agent = None
for line in sys.stdin:
    name, chamber = (json.loads(line) + ["0"])[:2]
    chamber = int(chamber)
    try:
        agent = agent or Agent.from_key_file(sys.argv[1], sys.argv[2], patience=120)
        if name == "register": agent.register("0x" + "22" * 20, "ops@example.org")
        if name == "join": agent.join(chamber)
        if name == "propose": agent.propose(chamber, "Rain", "RAIN")
        if name == "debate": agent.debate(chamber, "Costs come first.")
        if name == "pass": agent.pass_turn(chamber)
        if name == "commit": agent.commit(chamber, [{"ideaId": "idea-1", "bps": 6000}])
        if name == "reveal": agent.reveal(chamber, trust_service=True)
        print("done", flush=True)
    except ChamberError as error:
        print(error, flush=True)
`;

function pythonPlayer(url: string, keyFile: string): Player {
  const child = spawn('python3', ['-c', PYTHON, url, keyFile], { env: PYTHON_ENV, stdio: ['pipe', 'pipe', 'inherit'] });
  atEnd(() => void child.kill());
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    play: async (step) => {
      child.stdin.write(`${JSON.stringify(step)}\n`);
      const line = String((await lines.next()).value);
      if (line.startsWith('CLIENT_ERR_STORAGE')) throw new NothingSent(line);
      if (line !== 'done') throw new Error(line);
    },
  };
}

const WORDS: Readonly<Record<string, readonly string[]>> = {
  register: ['agent', 'register', `--wallet=0x${'22'.repeat(20)}`, '--email=ops@example.org'],
  propose: ['--name=Rain', '--ticker=RAIN'],
  debate: ['--comment=Costs come first.'],
  commit: ['idea-1=6000'],
  reveal: ['--trust-service'],
};

function commandLinePlayer(url: string, keyFile: string): Player {
  return {
    play: async ([name, chamberId = '']) => {
      const words = name === 'register' ? (WORDS['register'] ?? []) : ['move', name, chamberId, ...(WORDS[name] ?? [])];
      // Each process makes a first contact; the next process sends what a previous one could not send.
      for (let attempt = 0; attempt < 60; attempt++) {
        const args = [CLI, '--json', ...words, `--url=${url}`, `--key=${keyFile}`];
        const child = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'pipe'] });
        const [[code], err] = await Promise.all([once(child, 'exit'), text(child.stderr)]);
        if (code === 0) return;
        if (err.includes('CLIENT_ERR_STORAGE') || err.includes('EROFS') || err.includes('ENOSPC'))
          throw new NothingSent(err);
        if (!/CLIENT_ERR_(UNREACHABLE|ANSWER)/.test(err)) throw new Error(err);
      }
      throw new Error(`not sent in 60 attempts: ${name}`);
    },
  };
}

const PLAYERS = [
  ['JavaScript', javaScriptPlayer, true],
  ['Python', pythonPlayer, hasPython],
  ['the command line', commandLinePlayer, true],
] as const;

describe(`seed ${SEED}`, () => {
  it.each(PLAYERS)(
    'a chamber with %s has each move once, no wrong reports, and all reveals',
    { timeout: 280_000 },
    async (_, playerOf, isHere) => {
      const disk = smallDisk('256k');
      if (!isHere || disk === undefined) return;
      const live = await runLiveService();
      const url = await openBadProxy(live);
      const creator = await newAgent(live);
      const { chamberId } = await creator.createChamber({ ...newChamber(live.now()) });
      const keyFile = join(disk, 'agent.json');
      const { play } = playerOf(url, keyFile);
      const id = `${chamberId}`;
      if (playerOf === commandLinePlayer) await Agent.fromKeyFile(url, keyFile);
      await firstContact(play);
      await play(['join', id]);
      live.advance(PHASE_MILLIS);
      await play(['propose', id]);
      mode(disk, 'ro');
      await play(['pass', id]);
      live.advance(PHASE_MILLIS);
      await play(['debate', id]);
      mode(disk, 'rw');
      fill(join(disk, 'filler'));
      await play(['debate', id]);
      await play(['pass', id]);
      live.advance(PHASE_MILLIS);
      // A commitment must not be sent if its salt can't be stored.
      await expect(play(['commit', id])).rejects.toBeInstanceOf(NothingSent);
      rmSync(join(disk, 'filler'));
      await play(['commit', id]);
      live.advance(PHASE_MILLIS);
      mode(disk, 'ro');
      await play(['reveal', id]);
      mode(disk, 'rw');
      const types: string[] = [];
      for await (const { event } of live.forum.history(chamberId)) types.push(event.type.split('.')[1] ?? '');
      expect(types).toEqual([
        ...['created', 'joined', 'proposed', 'passed', 'debated', 'debated', 'passed', 'committed', 'revealed'],
      ]);
    },
  );
});

/** Repeats the first contact: an unexpected response fails at once before anything is sent, and registering twice changes nothing. */
async function firstContact(play: Player['play']): Promise<void> {
  for (let attempt = 0; attempt < 30; attempt++) {
    try {
      return await play(['register']);
    } catch (error) {
      const { code, message } = error as ClientError;
      if (!/CLIENT_ERR_(ANSWER|UNREACHABLE)/.test(code ?? message)) throw error;
    }
  }
  throw new Error('not registered in 30 attempts');
}

function mode(disk: string, access: 'ro' | 'rw'): void {
  execFileSync('mount', ['-o', `remount,${access}`, disk]);
}
