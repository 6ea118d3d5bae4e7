// Runs the built service and client on the Node versions named as arguments (`22.14.0`, `22`, `26`). Each version is fetched from
// the registry; each run registers an agent, makes a signed move, reads it back from a stream, and sends a body with an `Upgrade`
// that the service does not offer, which versions of Node handle differently. With --run, the file is the part that runs on such
// a version.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const RUN_MILLIS_MAX = 60_000;

const words = process.argv.slice(2);
if (words[0] === '--run') await run();
else for (const version of words) check(version);

/** Throws, and so fails the program, if the version is unavailable or its service does not work. */
function check(version) {
  const binary = fetchNode(version);
  const options = { cwd: ROOT, encoding: 'utf8', timeout: RUN_MILLIS_MAX, stdio: ['ignore', 'pipe', 'inherit'] };
  const running = execFileSync(binary, [fileURLToPath(import.meta.url), '--run'], options).trim();
  if (!`${running}.`.startsWith(`v${version}.`)) throw new Error(`Node ${version} was requested, but ${running} ran`);
  process.stdout.write(`Node ${running}: registered, moved and streamed (${binary})\n`);
}

/** Returns the path of the version's binary in npm's cache, outside of the project, whose node_modules/.bin has another Node. */
function fetchNode(version) {
  const folder = mkdtempSync(join(tmpdir(), 'node-versions-'));
  try {
    const words = ['exec', '--yes', `--package=node@${version}`, '--', 'node', '-p', 'process.execPath'];
    const { PATH = '', ...env } = process.env;
    const outside = PATH.split(':').filter((entry) => !entry.startsWith(ROOT));
    const options = { cwd: folder, env: { ...withoutNpm(env), PATH: outside.join(':') }, encoding: 'utf8' };
    return execFileSync('npm', words, { ...options, stdio: ['ignore', 'pipe', 'inherit'] }).trim();
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Removes npm's variables for scripts, which would tie the npm started here to this project. */
function withoutNpm(env) {
  return Object.fromEntries(
    Object.entries(env).filter(([name]) => !/^npm_(package|lifecycle|config_local_prefix)/.test(name)),
  );
}

/** Runs on the version under test, and prints the version on success. */
async function run() {
  const { Agent } = await import('../dist/src/client/index.js');
  const service = await startService();
  try {
    const agent = Agent.generate(service.url);
    await agent.register({ walletAddress: `0x${'11'.repeat(20)}`, operatorEmail: 'node@example.org' });
    const { chamberId } = await agent.createChamber(chamber());
    await agent.joinChamber(chamberId);
    const types = [];
    for await (const { type } of agent.forum.events(chamberId, { signal: AbortSignal.timeout(RUN_MILLIS_MAX / 2) })) {
      types.push(type);
      if (type === 'chamber.joined') break;
    }
    if (types.join() !== 'chamber.created,chamber.joined') throw new Error(`the stream returned ${types}`);
    const status = await postWithUpgrade(`${service.url}/register`, '{}');
    if (status !== 400) throw new Error(`a body with an upgrade got ${status}`);
  } finally {
    await service.stop();
  }
  process.stdout.write(`${process.version}\n`);
}

/** Starts the built service like `npm start`, on this binary. */
async function startService() {
  const [, command = ''] = /^exec node (.*)$/m.exec(readFileSync(join(ROOT, 'deploy/start.sh'), 'utf8')) ?? [];
  const env = { ...process.env, PORT: '0', CHAIN: 'none', DATABASE_PATH: ':memory:', LOG_LEVEL: 'error' };
  const child = spawn(process.execPath, command.split(' '), { cwd: ROOT, env, stdio: ['ignore', 'pipe', 'inherit'] });
  for await (const line of createInterface({ input: child.stdout })) {
    const [, url] = /^listening on (\S+)$/.exec(line) ?? [];
    if (url === undefined) continue;
    // The end of the loop has paused the stream, and an unread pipe fills up.
    child.stdout.resume();
    return { url, stop: () => stop(child) };
  }
  throw new Error('the service exited before it listened');
}

async function postWithUpgrade(url, body) {
  const headers = { Connection: 'Upgrade', Upgrade: 'h2c', 'Content-Type': 'application/json' };
  const [response] = await once(request(url, { method: 'POST', headers }).end(body), 'response');
  response.resume();
  return response.statusCode;
}

async function stop(child) {
  const exited = once(child, 'exit');
  child.kill('SIGTERM');
  const [code] = await exited;
  if (code !== 0) throw new Error(`the service exited with ${code}`);
}

function chamber() {
  const inMinutes = (minutes) => new Date(Date.now() + minutes * 60_000);
  return {
    name: 'Versions of Node',
    lobbyDeadline: inMinutes(10),
    proposalDeadline: inMinutes(20),
    debateDeadline: inMinutes(30),
    allocateCommitDeadline: inMinutes(40),
    allocateRevealDeadline: inMinutes(50),
  };
}
