// `chambers proof`: verifies a proof of misbehaviour, offline.
import { readFile } from 'node:fs/promises';
import type { CommandSpec, Input } from './command.ts';
import { CommandError, print } from './output.ts';
import { isRegularFile } from './write-whole.ts';

export const proofCommand: CommandSpec = {
  name: 'proof',
  summary: 'Verifies a proof that a service has signed what it did not keep, offline',
  args: { '<file>': 'a proof, as audit --proofs and mirror write it' },
  exitCodes: ['0  it proves what is printed, if the keys are those of the service', '3  it proves nothing'],
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
      `It is proved if these are keys of the service of log ${logId}, as its chambers and its key directory name them:`,
      ...receiptKeys.map((key) => `  receipts     ${key}`),
      ...checkpointKeys.map((key) => `  checkpoints  ${key}`),
      ...witnessKeys.map((key) => `  a witness    ${key}`),
    ]);
  } catch (error) {
    throw new CommandError('verification', `${path} proves nothing: ${(error as Error).message}`);
  }
}
