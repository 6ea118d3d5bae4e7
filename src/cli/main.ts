import { CommanderError } from 'commander';
import { adminCommands } from './admin-commands.ts';
import { agentCommands } from './agent-commands.ts';
import { chamberCommands } from './chamber-commands.ts';
import { type CommandSpec, toProgram, withoutUnknownValues } from './command.ts';
import { contractsCommands } from './contracts-commands.ts';
import { explain } from './explain.ts';
import { initCommand } from './init-command.ts';
import { keyCommands } from './key-commands.ts';
import { logCommands } from './log-commands.ts';
import { mirrorCommand } from './mirror-command.ts';
import { moveCommands } from './move-commands.ts';
import { newLogCommand } from './new-log.ts';
import { outcomeCommand } from './outcome-command.ts';
import { EXIT, printError } from './output.ts';
import { proofCommand } from './proof-command.ts';
import { receiptsCommand } from './receipts-command.ts';
import { serviceCommands } from './service-commands.ts';
import { checkVariables } from './variables.ts';
import { watchCommand } from './watch-command.ts';

export const COMMANDS: readonly CommandSpec[] = [
  ...serviceCommands,
  ...adminCommands,
  ...keyCommands,
  newLogCommand,
  ...contractsCommands,
  initCommand,
  ...agentCommands,
  watchCommand,
  ...chamberCommands,
  ...moveCommands,
  outcomeCommand,
  ...logCommands,
  receiptsCommand,
  mirrorCommand,
  proofCommand,
];

/** Runs the words after `chambers`, prints the result and resolves to the exit code. */
export async function cliMain(words: readonly string[]): Promise<number> {
  let exitCode: number = EXIT.ok;
  const program = toProgram(COMMANDS, words, async (spec, input) => {
    checkVariables();
    try {
      exitCode = (await spec.run(input)) ?? EXIT.ok;
    } catch (error) {
      throw explain(error, spec, input);
    }
  });
  try {
    if (words.length === 0) {
      program.outputHelp();
      return EXIT.usage;
    }
    await program.parseAsync(withoutUnknownValues(program, words), { from: 'user' });
    return exitCode;
  } catch (error) {
    if (error instanceof CommanderError && error.exitCode === EXIT.ok) return EXIT.ok;
    return printError(words.includes('--json'), error);
  }
}
