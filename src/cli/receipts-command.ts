import { existsSync } from 'node:fs';
import { Unreachable, UnusableInput } from '../audit/line/input.ts';
import { paint } from '../process/terminal.ts';
import { toHex, toTimestamp } from '../vocabulary/values.ts';
import { type CommandSpec, type Input, KEY_OPTION, URL_OPTION } from './command.ts';
import { keyFileOf, urlOf } from './environment.ts';
import { CommandError, EXIT, print, table } from './output.ts';

export const receiptsCommand: CommandSpec = {
  name: 'receipts',
  summary: "Lists the receipts next to the agent's key, and checks that the service kept its promises",
  options: {
    '--lines <file>': 'check the receipts offline, against the exported lines of a chamber',
    ...KEY_OPTION,
    ...URL_OPTION,
  },
  exitCodes: ['0  the service kept its promises', '3  the service broke a promise: audit --receipts proves it'],
  examples: ['receipts', 'receipts --lines=chamber-1.ndjson --json'],
  run: receipts,
};

async function receipts(input: Input): Promise<number> {
  const { lines } = input.options;
  const { readReceipts } = await import('../audit/receipts/given-receipts.ts');
  const { judgeByLines, judgeByService } = await import('../audit/receipts/judge-receipts.ts');
  const folder = `${keyFileOf(input)}.receipts`;
  if (!existsSync(folder)) throw new CommandError('usage', `${folder} not found: that key has no receipts`);
  try {
    const given = readReceipts(folder);
    const judged =
      lines === undefined ? await judgeByService(given, urlOf(input), Date.now()) : await judgeByLines(given, lines);
    const listed = judged.map(({ parsed, verdict, reason }) => {
      const { logId, stream, eventId, leaf, created } = parsed;
      const [chamberId, did] = typeof stream === 'number' ? [stream, null] : [null, stream];
      const createdAt = toTimestamp(created * 1_000);
      return { logId, chamberId, did, eventId, leaf: toHex(leaf), createdAt, verdict, reason };
    });
    const rows = listed.map(({ chamberId, eventId, createdAt, verdict, reason }) => [
      chamberId ?? 'account',
      eventId,
      createdAt,
      verdict,
      reason,
    ]);
    const count = (counted: string) => listed.filter(({ verdict }) => verdict === counted).length;
    const [broken, undecided] = [count('broken'), count('undecided')];
    const open = undecided === 0 ? '' : `${undecided} undecided, `;
    const sum = `${listed.length} receipts, ${broken} broken, ${open}${count('not evaluated')} not evaluated`;
    const isSound = broken + undecided === 0;
    print(input.isJson, { receipts: listed }, [
      ...table(['CHAMBER', 'EVENT', 'SIGNED', 'VERDICT', 'WHY'], rows, 'No receipts.'),
      '',
      paint(isSound ? 'green' : 'red', sum),
    ]);
    return isSound ? EXIT.ok : EXIT.verification;
  } catch (error) {
    if (error instanceof UnusableInput) throw new CommandError('usage', error.message);
    if (error instanceof Unreachable) throw new CommandError('unreachable', error.message);
    throw error;
  }
}
