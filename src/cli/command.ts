// Describes commands as data and builds the commander program from them. Commander parses words and prints help; every error is one
// sentence.
import { Command, type CommanderError, type Option } from 'commander';
import { paint } from '../process/terminal.ts';
import { VERSION } from '../process/version.ts';
import { nearestName } from '../vocabulary/suggestion.ts';
import { CommandError, EXIT } from './output.ts';
import { loadVariables, VARIABLES } from './variables.ts';

export interface Input {
  readonly args: readonly string[];
  /** The options by name, e.g. `min-backers`. */
  readonly options: Readonly<Record<string, string | undefined>>;
  readonly isJson: boolean;
}

/** Help texts by argument or option, in commander's syntax, e.g. `<id>` or `--limit <count>`. */
type HelpTexts = Readonly<Record<string, string>>;

export interface CommandSpec {
  /** The name with its group, e.g. `chamber create`. */
  readonly name: string;
  readonly summary: string;
  readonly args?: HelpTexts;
  readonly required?: HelpTexts;
  readonly options?: HelpTexts;
  /** Options that may be repeated; their values are joined with commas. */
  readonly repeatable?: HelpTexts;
  /** Exit codes that are specific to this command. */
  readonly exitCodes?: readonly string[];
  /** Replaces the usage line made from the arguments. */
  readonly usage?: string;
  /** The examples without the leading `chambers`. */
  readonly examples: readonly string[];
  /** Resolves to the exit code; undefined stands for 0. */
  run(input: Input): Promise<number | undefined> | Promise<void>;
}

export const URL_OPTION = {
  '--url <url>': 'base URL of the service (default: CHAMBERS_URL or http://127.0.0.1:8787)',
} as const;
/** Commands that follow the service use --patience only until the first response, and then retry indefinitely. */
export const SERVICE_OPTIONS = {
  ...URL_OPTION,
  '--patience <length>':
    'how long to retry while the service is unreachable, e.g. 60s (default: 3s; for a move, until its result is known)',
} as const;
export const KEY_OPTION = {
  '--key <file>': "the agent's key file (default: CHAMBERS_KEY_FILE or ~/.chambers/agent.json)",
} as const;
/** Returns the options --url and --key of this command, for a suggested next command: empty, or with a leading space. */
export function urlAndKeyOptions({ options: { url, key } }: Input): string {
  return `${url === undefined ? '' : ` --url=${url}`}${key === undefined ? '' : ` --key=${key}`}`;
}

export const CHAMBER_ARGUMENT = { '<id>': 'the chamber, e.g. 1' } as const;

const GROUPS: HelpTexts = {
  admin: 'Edits the ban list, the allow-list, the list of withheld texts and the key file of the service',
  agent: 'Manages the agent whose key is in the key file',
  contracts: 'Deploys, checks and changes the contracts on the chain, as their owner',
  chamber: 'Creates, lists, shows and follows chambers',
  move: "Makes the agent's moves in a chamber",
};

const USAGE = '<command> [arguments] [options]';

type Run = (spec: CommandSpec, input: Input) => Promise<void>;

/** The program throws a CommandError on wrong usage, and a CommanderError with exit code 0 after printing help or the version. */
export function toProgram(specs: readonly CommandSpec[], words: readonly string[], run: Run): Command {
  const program = new Command('chambers')
    .description('Runs, uses and checks a Chamber Coordination Service.')
    .usage(USAGE)
    .option('--json', 'print JSON, errors too')
    .option('--env-file <file>', 'set the variables in the file first; those of the environment take precedence')
    .version(VERSION, '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print help')
    .helpCommand('help [command]', 'print help')
    .configureOutput({
      writeOut: (text) => console.log(text.trimEnd()),
      writeErr: () => {},
      getOutHelpWidth: () => process.stdout.columns ?? 160,
    })
    .configureHelp({ showGlobalOptions: true, styleTitle: (title) => paint('bold', title), subcommandTerm: termOf });
  program.hook('preAction', () => {
    const { envFile } = program.opts<{ readonly envFile?: string }>();
    if (envFile !== undefined) loadVariables(envFile);
  });
  throwUsageErrors(program, words);
  for (const spec of specs) addCommand(program, spec, words, run);
  return program.addHelpText('after', overview()).addHelpText('before', () => {
    // Only the overview lists the commands of every group.
    const visibleCommands = () => program.commands.flatMap((c) => (c.commands.length === 0 ? [c] : [...c.commands]));
    program.configureHelp({ ...program.configureHelp(), visibleCommands });
    return '';
  });
}

function addCommand(program: Command, spec: CommandSpec, words: readonly string[], run: Run): void {
  const { name, summary, args = {}, required = {}, options = {}, repeatable = {}, exitCodes, examples } = spec;
  const [first = '', second] = name.split(' ');
  const existing = program.commands.find((group) => group.name() === first);
  const parent = second === undefined ? program : (existing ?? addGroup(program, first, words));
  const command = parent.command(second ?? first).description(summary);
  throwUsageErrors(command, words);
  for (const [syntax, help] of Object.entries(args)) command.argument(syntax, help);
  for (const [flags, help] of Object.entries(required)) command.requiredOption(flags, help);
  for (const [flags, help] of Object.entries(options)) command.option(flags, help);
  for (const [flags, help] of Object.entries(repeatable)) {
    command.option(flags, `${help} (repeatable)`, (value, before?: string) => (before ? `${before},${value}` : value));
  }
  command.usage(spec.usage ?? [...Object.keys(args), ...Object.keys(required), '[options]'].join(' '));
  if (exitCodes !== undefined) command.addHelpText('after', section('Exit codes', ...exitCodes));
  command.addHelpText('after', section('Examples', ...examples.map((example) => `chambers ${example}`)));
  command.action(() => {
    const { json } = program.opts<{ readonly json?: boolean }>();
    return run(spec, { args: command.args, options: valuesOf(command, words), isJson: json === true });
  });
}

function addGroup(program: Command, name: string, words: readonly string[]): Command {
  const group = program.command(name).usage(USAGE);
  return throwUsageErrors(group.description(GROUPS[name] ?? ''), words);
}

/** Returns the values by option name. Throws if commander has mistaken an option for the missing value of the option before it. */
function valuesOf(command: Command, words: readonly string[]): Input['options'] {
  const values = command.options.map((option) => {
    const value: unknown = command.opts()[option.attributeName()];
    if (typeof value === 'string' && value.startsWith('--') && words.includes(value))
      throw missingValue(option, command);
    return [option.name(), value === true ? '' : (value as string | undefined)] as const;
  });
  return Object.fromEntries(values);
}

/** Removes the value of an unknown `--option=value`, because commander would report the value as part of the name. */
export function withoutUnknownValues(program: Command, words: readonly string[]): readonly string[] {
  const commands = program.commands.flatMap((command) => [program, command, ...command.commands]);
  const known = new Set(commands.flatMap(({ options }) => options.map(({ long }) => long)));
  return words.map((word) => {
    const [name = word] = /^--[^=]+(?==)/.exec(word) ?? [];
    return known.has(name) ? word : name;
  });
}

function throwUsageErrors(command: Command, words: readonly string[]): Command {
  return command.exitOverride((error) => {
    throw error.exitCode === EXIT.ok ? error : toCommandError(error, command, words);
  });
}

function toCommandError({ code, message }: CommanderError, command: Command, words: readonly string[]): CommandError {
  const { args, registeredArguments, commands } = command;
  const [unknown = ''] = args;
  switch (code) {
    case 'commander.help':
      return usageError(
        `${pathOf(command)} needs a command: ${commands.map((child) => child.name()).join(', ')}`,
        command,
      );
    case 'commander.unknownCommand':
      return unknownError(`command '${unknown}'`, suggestedCommand(unknown, command), command);
    case 'commander.unknownOption': {
      const option = unknownOption(command, words);
      const names = optionsOf(command).flatMap(({ long }) => long ?? []);
      return unknownError(`option '${option}'`, nearestName(option, names), command);
    }
    case 'commander.missingArgument':
      return usageError(`missing required argument '${registeredArguments[args.length]?.name()}'`, command);
    case 'commander.optionMissingArgument':
      return missingValue(optionOf(words.at(-1), command), command);
    case 'commander.missingMandatoryOptionValue': {
      const isMissing = (option: Option) =>
        option.mandatory && command.getOptionValue(option.attributeName()) === undefined;
      return usageError(`required option '${command.options.find(isMissing)?.flags}' not specified`, command);
    }
    case 'commander.excessArguments': {
      const expected = `${registeredArguments.length} argument${registeredArguments.length === 1 ? '' : 's'}`;
      return usageError(
        `too many arguments for '${command.name()}': expected ${expected} but got ${args.length}`,
        command,
      );
    }
    default:
      return usageError(message, command);
  }
}

/** Returns the command's options, including those of its parents. */
function optionsOf(command: Command): readonly Option[] {
  return [...command.options, ...(command.parent === null ? [] : optionsOf(command.parent))];
}

function optionOf(word: string | undefined, command: Command): Option | undefined {
  const [name] = word?.split('=', 1) ?? [];
  return optionsOf(command).find(({ long, short }) => name !== undefined && (name === long || name === short));
}

/** Returns the first option that the command does not have, or that has a value but takes none. */
function unknownOption(command: Command, words: readonly string[]): string {
  const isUnknown = (word: string, index: number) => {
    if (!word.startsWith('-') || optionOf(words[index - 1], command)?.required) return false;
    const option = optionOf(word, command);
    return option === undefined || (word.includes('=') && !option.required);
  };
  const unknown = words.find(isUnknown) ?? '';
  return optionOf(unknown, command) === undefined ? (unknown.split('=', 1)[0] ?? '') : unknown;
}

/** Returns the path of each group's command with that name; otherwise the most similar name. */
function suggestedCommand(unknown: string, command: Command): string | undefined {
  const ofGroups = rootOf(command).commands.flatMap((group) => group.commands);
  const paths = ofGroups.filter((each) => each.name() === unknown).map(pathOf);
  const names = command.commands.map((child) => child.name());
  return paths.length > 0 ? paths.join(' or ') : nearestName(unknown, names);
}

function unknownError(what: string, suggestion: string | undefined, command: Command): CommandError {
  if (suggestion === undefined) return usageError(`unknown ${what}`, command);
  return new CommandError('usage', `unknown ${what}: did you mean ${suggestion}?`);
}

function missingValue(option: Option | undefined, command: Command): CommandError {
  return usageError(`option '${option?.flags}' argument missing`, command);
}

function rootOf(command: Command): Command {
  return command.parent === null ? command : rootOf(command.parent);
}

function usageError(sentence: string, command: Command): CommandError {
  return new CommandError('usage', `${sentence}; see ${pathOf(command)} --help`);
}

function pathOf(command: Command): string {
  return command.parent === null ? command.name() : `${pathOf(command.parent)} ${command.name()}`;
}

/** Returns the command with its arguments, without `chambers`. */
function termOf(command: Command): string {
  const args = command.usage().replace(/ ?(\(?--|\[options\]).*/, '');
  return `${pathOf(command).replace('chambers ', '')} ${args}`.trimEnd();
}

function overview(): string {
  const codes = Object.entries(EXIT).map(([name, code]) => `${code} ${name}`);
  const width = Math.max(...Object.keys(VARIABLES).map((name) => name.length));
  return [
    section('Environment', ...Object.entries(VARIABLES).map(([name, about]) => `${name.padEnd(width)}  ${about}`)),
    section('Exit codes', codes.join(', ')),
    section('Examples', 'chambers start', 'chambers demo', 'chambers agent new', 'chambers chamber tail 1 --json'),
  ].join('\n');
}

function section(title: string, ...lines: readonly string[]): string {
  return [`\n${paint('bold', `${title}:`)}`, ...lines.map((line) => `  ${line}`)].join('\n');
}
