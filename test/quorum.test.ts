// A service on contracts with the live protocol's interface: from the first move to the token, with an audit; and starts that are
// rejected because of wrong wiring.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Hex } from 'viem';
import { beforeEach, expect, test } from 'vitest';
import { auditFile, auditService } from '../src/audit/audit.ts';
import { AuditedChain } from '../src/audit/chain/chain-reader.ts';
import type { ChamberReport } from '../src/audit/report/report-types.ts';
import { spawnAnvil } from '../src/dev-chain/anvil.ts';
import { openRpc } from '../src/relayer/rpc.ts';
import { decodeTransaction, openAccount, signTransaction } from '../src/relayer/transactions.ts';
import type { RelayTransaction } from '../src/vocabulary/service-payloads.ts';
import { parse, rechained, toText } from './audit/forge.ts';
import { openLiveService } from './client/live-service.ts';
import { playChamber } from './client/play-chamber.ts';
import { atEnd, temporaryFolder } from './kit/temporary.ts';
import { deployFor, fund, NEXT, NEXT_KEY } from './relayer/owner-account.ts';
import { quorumFile } from './relayer/quorum-file.ts';

let env: Readonly<Record<string, string>>;
let chain: AuditedChain;
beforeEach(async () => {
  const anvil = await spawnAnvil([]);
  atEnd(() => anvil.kill());
  const rpc = openRpc(anvil.rpcUrl);
  await fund(rpc, NEXT);
  const { registryAddress, factoryAddress } = await deployFor(rpc, NEXT_KEY, 'quorum');
  rpc.close();
  chain = new AuditedChain(anvil.rpcUrl, [registryAddress]);
  env = {
    CHAIN: '',
    RPC_URL: anvil.rpcUrl,
    CONTRACTS: 'quorum',
    CONTRACTS_FILE: quorumFile(),
    CHAMBER_REGISTRY_ADDRESS: registryAddress,
    IDEA_FACTORY_ADDRESS: factoryAddress,
    RELAYER_PRIVATE_KEY: NEXT_KEY,
  };
});

function verdicts(report: ChamberReport | undefined) {
  const names = ['transactions', 'contract', 'claims'];
  return names.map((name) => report?.checks.find((check) => check.name === name)?.verdict);
}

test('a chamber gets its root and its token, and the auditor verifies them', async () => {
  const live = await openLiveService(env);
  atEnd(() => live.stop());
  await playChamber(live);
  expect(await live.forum.ideas()).toMatchObject([
    { ticker: 'IDEA', tokenAddress: expect.stringMatching(/^0x\w{40}$/) },
  ]);
  const { chambers } = await auditService(live.baseUrl, {
    ...{ chain, now: live.now },
    // The chain's time is the machine's, and the service's was moved ahead.
    policy: { maxSkewSeconds: 7 * 86_400 },
  });
  const [report] = chambers;
  expect(report?.verdict).toBe('verified');
  expect(verdicts(report)).toEqual(['verified', 'verified', 'verified']);

  const lines = (await (await fetch(`${live.baseUrl}/chambers/1/events`)).text()).trim().split('\n');
  const path = join(temporaryFolder(), 'forged.ndjson');
  writeFileSync(path, toText(await withOtherIdea(lines)));
  const forged = await auditFile(path, {});
  expect(verdicts(forged)).toEqual(['broken', 'not evaluated', 'not evaluated']);
  expect(JSON.stringify(forged)).toMatch(/calls deployIdea\([^)]*OTHR[^)]*\), which was not due/);
});

/** Returns the lines of a service that deployed a ticker other than the chamber's. */
async function withOtherIdea(lines: readonly string[]): Promise<readonly string[]> {
  const records = parse(lines);
  const { payload } = records.find(({ type }) => type === 'relay.deploy_submitted') ?? {};
  const { data = '0x', ...unsigned } = decodeTransaction(payload as unknown as RelayTransaction);
  const [from = '', to = ''] = ['IDEA', 'OTHR'].map((ticker) => Buffer.from(ticker).toString('hex').padEnd(64, '0'));
  const other = data.replace(from, to) as Hex;
  Object.assign(payload as object, await signTransaction(openAccount(NEXT_KEY), { ...unsigned, data: other }));
  return rechained(records);
}

test.each<readonly [string, Readonly<Record<string, string>>, RegExp]>([
  [
    'the key of a different account',
    { RELAYER_PRIVATE_KEY: `0x${'0e'.repeat(32)}` },
    /^RELAYER_PRIVATE_KEY: .*NotDealer/,
  ],
  ['the reference profile', { CONTRACTS: '', CONTRACTS_FILE: '' }, /^CHAMBER_REGISTRY_ADDRESS: .*roots/],
])('a start with %s is rejected', async (_title, changes, problem) => {
  await expect(openLiveService({ ...env, ...changes })).rejects.toThrow(problem);
});

test('a start with a wrong sum of bps is rejected', async () => {
  const CONTRACTS_FILE = quorumFile({ bps: [1, 1, 1, 1, 1, 1] });
  await expect(openLiveService({ ...env, CONTRACTS_FILE })).rejects.toThrow(/^CONTRACTS_FILE: .*InvalidBpsSum\(6\)/);
});
