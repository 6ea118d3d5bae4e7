// From the words of a call to a command and its input; whatever does not fit is refused with the nearest right name.
import { parseArgs } from 'node:util';
import type { Command, Input, OptionSpec } from './command.ts';
import { UsageError } from './failure.ts';
import { nearest } from './nearest.ts';

const SWITCHES: Readonly<Record<string, OptionSpec>> = {
  json: { help: 'print JSON, errors too' },
  help: { help: 'print help' },
};

export const COMMON_OPTIONS = SWITCHES;

/** The command that the words start with, which comes before its options. */
export function findCommand(words: readonly string[], commands: readonly Command[]): Command {
  const [first = '', second = ''] = words;
  const found =
    commands.find(({ name }) => name === `${first} ${second}`) ?? commands.find(({ name }) => name === first);
  if (found !== undefined) return found;
  const isGroup = commands.some(({ name }) => name.startsWith(`${first} `));
  const asked = second === '' || second.startsWith('-') ? first : `${first} ${second}`;
  const names = commands.map(({ name }) => name).filter((name) => !isGroup || name.startsWith(`${first} `));
  throw new UsageError(`unknown command “${asked}”: did you mean “${nearest(asked, names)}”? See chambers --help`);
}

export function parseInput(command: Command, words: readonly string[]): Input & { readonly isHelp: boolean } {
  const specs = { ...command.options, ...SWITCHES };
  const config = Object.entries(specs).map(([name, { value }]) => [
    name,
    { type: value === undefined ? ('boolean' as const) : ('string' as const) },
  ]);
  const { positionals, tokens } = parseArgs({
    args: words.slice(command.name.split(' ').length),
    options: Object.fromEntries(config),
    allowPositionals: true,
    strict: false,
    tokens: true,
  });
  const options: Record<string, string> = {};
  for (const token of tokens) if (token.kind === 'option') options[token.name] = givenValue(token, specs);
  const { help, json } = options;
  const isHelp = help !== undefined;
  if (!isHelp) checkWhole(command, positionals, options);
  return { args: positionals, options, isJson: json !== undefined, isHelp };
}

interface OptionToken {
  readonly name: string;
  readonly rawName: string;
  readonly value: string | undefined;
  readonly inlineValue: boolean | undefined;
}

function givenValue(token: OptionToken, specs: Readonly<Record<string, OptionSpec>>): string {
  const { name, rawName, value, inlineValue } = token;
  if (!Object.hasOwn(specs, name)) {
    throw new UsageError(`unknown option ${rawName}: did you mean --${nearest(name, Object.keys(specs))}?`);
  }
  const spec = specs[name];
  if (spec?.value === undefined) {
    if (value !== undefined) throw new UsageError(`${rawName} takes no value`);
    return '';
  }
  const isForgotten = value === undefined || (value.startsWith('--') && inlineValue !== true);
  if (isForgotten) throw new UsageError(`${rawName} needs a value: ${rawName}=${spec.value}`);
  return value;
}

function checkWhole({ name, args, options }: Command, given: readonly string[], set: Readonly<Record<string, string>>) {
  const required = args.filter(({ arity }) => arity === undefined);
  const missing = required[given.length];
  if (missing !== undefined)
    throw new UsageError(`${missing.name} is missing: ${missing.help}; see chambers ${name} --help`);
  const takesRest = args.some(({ arity }) => arity === 'rest');
  const surplus = given[args.length];
  if (surplus !== undefined && !takesRest) throw new UsageError(`“${surplus}” is one argument too many for ${name}`);
  for (const [option, { isRequired, value, help }] of Object.entries(options)) {
    if (isRequired && set[option] === undefined) throw new UsageError(`--${option}=${value} is missing: ${help}`);
  }
}
