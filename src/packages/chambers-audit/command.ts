#!/usr/bin/env node
// The command `chambers-audit`: `chambers audit` without the other commands.
import '../../process/require-node.ts';
import { parseArgs } from 'node:util';
import { auditCommand } from '../../cli/audit-command.ts';
import { CommandError, printError } from '../../cli/output.ts';
import { exitWithOutput } from '../../process/terminal.ts';
import { VERSION } from '../../process/version.ts';

const { summary, args, options, repeatable, exitCodes } = auditCommand;
const FLAGS: Readonly<Record<string, string>> = {
  ...options,
  ...repeatable,
  '--json': 'print JSON, errors too',
  '--help': 'print help',
  '--version': 'print the version',
};

exitWithOutput();
process.exitCode = await main(process.argv.slice(2));

async function main(words: readonly string[]): Promise<number> {
  try {
    const { values, positionals } = parse(words);
    if ('help' in values || 'version' in values) {
      console.log('help' in values ? help() : VERSION);
      return 0;
    }
    if (positionals.length !== 1) throw new CommandError('usage', 'one target is required; see chambers-audit --help');
    return await auditCommand.run({ args: positionals, options: values, isJson: 'json' in values });
  } catch (error) {
    return printError(words.includes('--json'), error);
  }
}

/** Gives flags the value '' and joins repeated values with commas. */
function parse(words: readonly string[]) {
  const known = Object.keys(FLAGS).map((flag) => {
    const [name = '', value] = flag.slice('--'.length).split(' ');
    return [name, { type: value === undefined ? 'boolean' : 'string', multiple: flag in repeatable }] as const;
  });
  try {
    const parsed = parseArgs({ args: [...words], allowPositionals: true, options: Object.fromEntries(known) });
    const values: Record<string, string> = {};
    for (const [name, value] of Object.entries(parsed.values)) values[name] = value === true ? '' : String(value);
    return { values, positionals: parsed.positionals };
  } catch (error) {
    // The other sentences explain how to escape a leading dash.
    const [sentence = ''] = (error as Error).message.split('. ');
    throw new CommandError('usage', `${sentence}; see chambers-audit --help`);
  }
}

function help(): string {
  const rows = Object.entries({ ...args, ...FLAGS });
  const width = Math.max(...rows.map(([flag]) => flag.length));
  const lines = rows.map(([flag, about]) => `  ${flag.padEnd(width)}  ${about}`);
  const codes = exitCodes.map((code) => `  ${code}`);
  return [`Usage: chambers-audit <target> [options]\n\n${summary}\n`, ...lines, '\nExit codes:', ...codes].join('\n');
}
