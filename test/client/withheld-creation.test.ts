// Withholding a creation erases the creator's signature over the deadlines, so only the service attests them.
import { appendFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { Agent, ForumClient } from '../../src/client/index.ts';
import { run } from '../cli/run.ts';
import { python, runPython } from '../kit/python.ts';
import { atEnd, temporaryFolder } from '../kit/temporary.ts';
import { eventually } from '../kit/until.ts';
import { type HostileService, openHostileService } from './hostile-service.ts';
import { newAgent, newChamber, PHASE_MILLIS, REGISTRATION, sharedLiveService } from './live-service.ts';

const list = join(mkdtempSync(join(tmpdir(), 'withhold-')), 'list');
writeFileSync(list, '');
afterAll(() => rmSync(dirname(list), { recursive: true }));
const live = sharedLiveService({ WITHHOLD_FILE: list });
let hostile: HostileService;
let keyFile: string;
beforeEach(async () => {
  hostile = await openHostileService(live.baseUrl);
  atEnd(hostile.close);
  keyFile = join(temporaryFolder(), 'agent.json');
});

/** Returns a member of a chamber with or without rounds, in ALLOCATE_COMMIT. */
async function inChamber(settings: object = {}) {
  const warnings: string[] = [];
  const onWarning = (warning: string) => void warnings.push(warning);
  const agent = await Agent.fromKeyFile(new ForumClient(hostile.url, { ...live.sharedTime, onWarning }), keyFile);
  await agent.register({ ...REGISTRATION, label: 'Ada' });
  const creator = await newAgent(live);
  const { chamberId } = await creator.createChamber({ ...newChamber(live.now()), ...settings });
  for (const each of [creator, agent]) await each.joinChamber(chamberId);
  live.advance(3 * PHASE_MILLIS);
  return { agent, chamberId, warnings };
}

async function withholdCreation(chamberId: number, did: string): Promise<void> {
  appendFileSync(list, `${chamberId}:1 law\n${did}:1 law\n`);
  live.service.reloadLists();
  await eventually(async () => {
    const text = await (await fetch(`${live.baseUrl}/chambers/${chamberId}/events`)).text();
    expect(text.match(/"withheld"/g)).toHaveLength(2);
  }, 10_000);
}

async function inWithheldChamber(settings: object = {}) {
  const chamber = await inChamber(settings);
  await withholdCreation(chamber.chamberId, chamber.agent.did);
  return chamber;
}

/** The file of the agent's only opening. */
function openingFile(): string {
  const files = readdirSync(dirname(keyFile), { recursive: true, encoding: 'utf8' });
  return join(dirname(keyFile), files.find((file) => /0x[0-9a-f]{64}/.test(file)) ?? '');
}

const warningOf = (chamberId: number) =>
  `the creation of chamber ${chamberId} is withheld (law): the service alone attests its deadlines`;

/** Alters the stub without a new signature by the service. */
function forgeDeadlines(): void {
  hostile.alter = (path, body) =>
    path.includes('/events?after=0')
      ? body.replace(/"allocateCommitDeadline":"\d{4}/, '"allocateCommitDeadline":"2020')
      : body;
}

describe('a chamber whose creation is withheld', () => {
  it.each([
    ['without rounds', {}],
    ['with rounds', { turnSeconds: 60, rounds: { proposal: 1, debate: 1 } }],
  ])('the JavaScript client commits and reveals in a chamber %s, and warns once', async (_which, settings) => {
    const { agent, chamberId, warnings } = await inWithheldChamber(settings);
    await agent.commit(chamberId, [], { abstain: true });
    live.advance(PHASE_MILLIS);
    expect(await agent.reveal(chamberId)).toEqual({ ok: true, verified: true });
    expect(warnings).toEqual([warningOf(chamberId)]);
  });

  it('the JavaScript client does not commit if the service did not sign the stub', async () => {
    const { agent, chamberId, warnings } = await inWithheldChamber();
    forgeDeadlines();
    const rejected = { code: 'CLIENT_ERR_CHAIN', message: expect.stringContaining('signature does not verify') };
    await expect(agent.commit(chamberId, [], { abstain: true })).rejects.toMatchObject(rejected);
    expect(warnings).toEqual([]);
  });

  it('the JavaScript client reveals an earlier commitment only if the deadlines are unchanged', async () => {
    const { agent, chamberId } = await inChamber();
    await agent.commit(chamberId, [], { abstain: true });
    await withholdCreation(chamberId, agent.did);
    live.advance(PHASE_MILLIS);
    const stored = readFileSync(openingFile(), 'utf8');
    // Simulates a service that has since signed other deadlines.
    writeFileSync(openingFile(), stored.replace(/(allocateCommitDeadline\W+)\d/, '$19'));
    const rejected = { code: 'CLIENT_ERR_COMMITMENT', message: expect.stringContaining('its deadlines are not those') };
    await expect(agent.reveal(chamberId)).rejects.toMatchObject(rejected);
    writeFileSync(openingFile(), stored);
    expect(await agent.reveal(chamberId)).toEqual({ ok: true, verified: true });
  });

  it('the command line commits and prints the warning', async () => {
    const { chamberId } = await inWithheldChamber();
    const words = ['move', 'commit', `${chamberId}`, '--abstain', `--key=${keyFile}`, `--url=${hostile.url}`];
    const { exitCode, err } = await run(words);
    expect([exitCode, err]).toEqual([0, expect.stringContaining(`Warning: ${warningOf(chamberId)}`)]);
  });

  const COMMIT = `
import logging, sys
from chambers import Agent, ChamberError
logging.basicConfig(stream=sys.stdout, format="%(message)s")
agent = Agent.from_key_file(sys.argv[1], sys.argv[2])
try:
    print(agent.commit(int(sys.argv[3]), [], abstain=True)["ok"])
except ChamberError as error:
    print(error.code, error.detail)
`;
  const commitInPython = async (chamberId: number) =>
    (await runPython(COMMIT, [hostile.url, keyFile, `${chamberId}`], { env: live.sharedTimeEnv })).trim();

  python('the Python client commits, and warns', async () => {
    const { chamberId } = await inWithheldChamber();
    expect(await commitInPython(chamberId)).toBe(`${warningOf(chamberId)}\nTrue`);
  });

  python('the Python client does not commit if the service did not sign the stub', async () => {
    const { chamberId } = await inWithheldChamber();
    forgeDeadlines();
    expect(await commitInPython(chamberId)).toMatch(/^CLIENT_ERR_CHAIN .*signature does not verify/);
  });
});
