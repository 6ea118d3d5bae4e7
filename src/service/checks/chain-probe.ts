// Checks whether the service can use a chain: its id, and contracts that accept the relayer.
import { formatEther } from 'viem';
import { EXIT_CONFIG, EXIT_FAILURE } from '../../process/exit.ts';
import type { RelayerConfig } from '../../relayer/context.ts';
import { probeChain } from '../../relayer/identity.ts';
import { openAccount } from '../../relayer/transactions.ts';
import type { ProbedChain } from './check.ts';
import { ok, problem, warning } from './finding.ts';

/** Probes the chain. `remembered` is the chain with which the log was first used, and which it must keep. */
export async function probe(wanted: RelayerConfig, remembered: number | undefined): Promise<ProbedChain> {
  const chainId = wanted.chainId ?? remembered;
  if (remembered !== undefined && chainId !== remembered) {
    const detail = `the database was first used with chain ${remembered}, not ${chainId}`;
    const findings = [problem('chain', detail, { variable: 'CHAIN_ID', exitCode: EXIT_CONFIG })];
    return { findings, config: wanted, isReached: false, blockAt: 0 };
  }
  const { address } = openAccount(wanted.privateKey);
  const report = await probeChain({ ...wanted, chainId }, address);
  const config = { ...wanted, chainId: report.chainId ?? chainId };
  const findings = [
    ...report.mismatches.map(({ variable, problem: detail }) =>
      problem('chain', detail, { variable, exitCode: EXIT_FAILURE }),
    ),
    ...report.warnings.map(({ variable, problem: detail }) => warning('chain', detail, variable)),
  ];
  const funds = report.balance === undefined ? '' : `, which has ${formatEther(report.balance)} ether`;
  const sound = ok('chain', `chain ${config.chainId}, the contracts accept the relayer ${address}${funds}`);
  return {
    findings: findings.length > 0 ? findings : [sound],
    config,
    isReached: report.chainId !== undefined,
    blockAt: report.blockAt,
  };
}
