// The command line as a function: words in, exit code out.
import { VERSION } from '../version.ts';
import { agentCommands } from './agent-commands.ts';
import { chamberCommands } from './chamber-commands.ts';
import type { Command } from './command.ts';
import { databaseCommands } from './database-commands.ts';
import { doctorCommand } from './doctor-command.ts';
import { checkVariables } from './environment.ts';
import { EXIT, toFailure } from './failure.ts';
import { helpOf, overview } from './help.ts';
import { logCommands } from './log-commands.ts';
import { moveCommands } from './move-commands.ts';
import { findCommand, parseInput } from './parse.ts';
import { printFailure } from './print.ts';
import { serviceCommands } from './service-commands.ts';

export const COMMANDS: readonly Command[] = [
  ...serviceCommands,
  ...agentCommands,
  ...chamberCommands,
  ...moveCommands,
  ...logCommands,
  ...databaseCommands,
  doctorCommand,
];

/** Runs the words after `chambers` and prints what comes of it. */
export async function cliMain(words: readonly string[]): Promise<number> {
  try {
    return await run(words);
  } catch (error) {
    const failure = toFailure(error);
    printFailure(words.includes('--json'), failure);
    return failure.exitCode;
  }
}

async function run(words: readonly string[]): Promise<number> {
  const [first = '--help'] = words;
  if (['--help', '-h', 'help'].includes(first)) {
    console.log(overview(COMMANDS));
    return words.length === 0 ? EXIT.usage : EXIT.ok;
  }
  if (['--version', '-V'].includes(first)) {
    console.log(VERSION);
    return EXIT.ok;
  }
  checkVariables();
  const command = findCommand(words, COMMANDS);
  const { isHelp, ...input } = parseInput(command, words);
  if (!isHelp) return (await command.run(input)) ?? EXIT.ok;
  console.log(helpOf(command));
  return EXIT.ok;
}
