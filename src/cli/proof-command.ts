import { readFile } from 'node:fs/promises';
import type { CommandSpec, Input } from './command.ts';
import { CommandError, print } from './output.ts';
import { isRegularFile } from './write-whole.ts';

export const proofCommand: CommandSpec = {
  name: 'proof',
  summary: 'Verifies, offline, a proof that a service contradicted its signed statements',
  args: { '<file>': 'a proof from audit --proofs or mirror' },
  exitCodes: ['0  the printed sentence is proved, if the keys belong to the service', '3  the proof is invalid'],
  examples: ['proof proofs/two-receipts-5d41402abc4b.json', 'proof mirror/inconsistent-3-4.json --json'],
  run: verify,
};

async function verify({ args: [path = ''], isJson }: Input): Promise<void> {
  if (!(await isRegularFile(path))) throw new CommandError('usage', `${path} not found`);
  const { parseMisbehaviour, verifyMisbehaviour } = await import('../tlog/misbehaviour.ts');
  const text = await readFile(path, 'utf8');
  try {
    const proved = await verifyMisbehaviour(parseMisbehaviour(text));
    const { sentence, logId, receiptKeys, checkpointKeys, witnessKeys } = proved;
    print(isJson, proved, [
      sentence,
      '',
      `This is proved if these keys belong to the service of log ${logId}: compare them with its chambers and its key directory.`,
      ...receiptKeys.map((key) => `  receipts     ${key}`),
      ...checkpointKeys.map((key) => `  checkpoints  ${key}`),
      ...witnessKeys.map((key) => `  a witness    ${key}`),
    ]);
  } catch (error) {
    throw new CommandError('verification', `${path} proves nothing: ${(error as Error).message}`);
  }
}
