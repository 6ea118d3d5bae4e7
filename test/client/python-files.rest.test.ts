// The files of the Python client (key, openings and receipts) on failing disks and after crashes.
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import type { KeptReceipt } from '../../src/client/index.ts';
import { PYTHON_ENV, python, runPython } from '../kit/python.ts';
import { hasStrace, runWithoutLinks } from '../kit/strace.ts';
import { temporaryFolder } from '../kit/temporary.ts';
import { newAgent, newChamber, PHASE_MILLIS, runLiveService } from './live-service.ts';

const SLOW = { timeout: 120_000 };

const CONCURRENT_CREATION = `
import sys, threading
from chambers import Agent
start, dids = threading.Barrier(8), []
def make():
    start.wait()
    try:
        dids.append(Agent.from_key_file("http://service.test", sys.argv[1]).did)
    except Exception as error:
        dids.append(repr(error))
threads = [threading.Thread(target=make) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(*sorted(set(dids)), sep="\\n")
`;

python(
  'the Python client creates one key file in concurrent processes, and leaves no temporary file',
  SLOW,
  async () => {
    for (let round = 0; round < 15; round++) {
      const keyFile = join(temporaryFolder(), 'agent.json');
      expect((await runPython(CONCURRENT_CREATION, [keyFile])).trimEnd().split('\n')).toEqual([
        expect.stringMatching(/^did:key:z/),
      ]);
      expect(readdirSync(join(keyFile, '..'))).toEqual(['agent.json']);
      expect(JSON.parse(readFileSync(keyFile, 'utf8'))).toMatchObject({ seed: expect.stringMatching(/^0x/) });
    }
  },
);

const LOADING = `
import sys, chambers
chambers._require_private(sys.argv[1], sys.argv[2])
print("used")
`;

python('the Python client accepts a key file on platforms without modes', SLOW, async () => {
  const keyFile = join(temporaryFolder(), 'agent.json');
  // The mode that Python reports for every file on Windows.
  writeFileSync(keyFile, '{}', { mode: 0o666 });
  execFileSync('chmod', ['666', keyFile]);
  expect(await runPython(LOADING, [keyFile, 'win32'])).toBe('used\n');
  await expect(runPython(LOADING, [keyFile, 'linux'])).rejects.toThrow(/CLIENT_ERR_KEY.*chmod 600/s);
});

const PUBLISHING = `
import sys, chambers
chambers._publish(sys.argv[1], "first")
try:
    chambers._publish(sys.argv[1], "second")
except FileExistsError:
    print("exists")
`;

python('the Python client creates a file once even if links fail', SLOW, () => {
  if (!hasStrace) return console.log('skipped: strace is not installed');
  for (const error of ['EPERM', 'EOPNOTSUPP', 'ENOSYS']) {
    const path = join(temporaryFolder(), 'file');
    const out = runWithoutLinks(error, ['python3', '-c', PUBLISHING, path], PYTHON_ENV);
    expect(out).toBe('exists\n');
    expect(readFileSync(path, 'utf8')).toBe('first\n');
    expect(readdirSync(join(path, '..'))).toEqual(['file']);
  }
});

const AGENT = `
import sys
from chambers import Agent
agent = Agent.from_key_file(sys.argv[1], sys.argv[2])
`;
const PASSING = `${AGENT}
for _ in range(int(sys.argv[4])):
    print(agent.pass_turn(int(sys.argv[3]))["eventId"], flush=True)
`;

python('the Python client makes moves and warns once if receipts can’t be stored or were truncated', SLOW, async () => {
  const live = await runLiveService();
  const keyFile = join(temporaryFolder(), 'agent.json');
  const { chamberId } = await (await newAgent(live)).createChamber(newChamber(live.now()));
  const program = (count: number) => [live.baseUrl, keyFile, `${chamberId}`, `${count}`];
  const env = live.sharedTimeEnv;
  const joining = `${AGENT}agent.register("0x" + "22" * 20, "ops@example.org"); agent.join(int(sys.argv[3]))`;
  await runPython(joining, program(0), { env });
  live.advance(PHASE_MILLIS);
  const [logId = ''] = readdirSync(`${keyFile}.receipts`);
  const file = `${keyFile}.receipts/${logId}/chamber-${chamberId}.ndjson`;

  // An incomplete receipt.
  writeFileSync(file, readFileSync(file, 'utf8').repeat(2).slice(0, -40));
  expect(await runPython(PASSING, program(2), { env })).toBe('3\n4\n');
  const lines = readFileSync(file, 'utf8').trimEnd().split('\n');
  const events = lines.map((line) => (JSON.parse(line) as KeptReceipt).response.event.split(';leaf')[0]);
  expect(events).toEqual([2, 3, 4].map((id) => `${chamberId};id=${id}`));

  // An incomplete receipt to which an earlier release has appended the next one.
  writeFileSync(file, `${lines[0]?.slice(0, -40)}${lines[1]}\n`);
  expect(await runPython(PASSING, program(1), { env })).toBe('5\n');

  rmSync(`${keyFile}.receipts`, { recursive: true });
  writeFileSync(`${keyFile}.receipts`, 'not a folder');
  const warned = `${PASSING.replace('import sys', 'import logging, sys; logging.basicConfig(stream=sys.stdout, format="%(message)s")')}`;
  const out = (await runPython(warned, program(2), { env })).trimEnd().split('\n');
  expect(out).toEqual([
    expect.stringMatching(/^cannot read the last event of chamber 1 that this agent has seen: .*agent\.json\.receipts/),
    expect.stringMatching(/^accepted as event 6 of 1, but receipts cannot be stored in .*agent\.json\.receipts/),
    '6',
    '7',
  ]);
});
