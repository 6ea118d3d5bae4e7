// Help, made from the table of commands.
import { paint } from '../terminal.ts';
import type { ArgumentSpec, Command } from './command.ts';
import { VARIABLES } from './environment.ts';
import { EXIT } from './failure.ts';
import { COMMON_OPTIONS } from './parse.ts';

export function overview(commands: readonly Command[]): string {
  return sections({
    Usage: ['chambers COMMAND [ARGUMENTS] [OPTIONS]', 'chambers --version'],
    Commands: columns(commands.map(({ name, args, summary }) => [[name, ...args.map(argument)].join(' '), summary])),
    'Options of every command': columns(optionRows(COMMON_OPTIONS)),
    Environment: columns(Object.entries(VARIABLES)),
    'Exit codes': [
      Object.entries(EXIT)
        .map(([name, code]) => `${code} ${name}`)
        .join(', '),
    ],
    Examples: ['chambers start', 'chambers demo', 'chambers agent new', 'chambers chamber tail 1 --json'],
  });
}

export function helpOf(command: Command): string {
  return sections({
    Usage: [`chambers ${usageOf(command)}`, '', command.summary],
    Arguments: columns(command.args.map(({ name, help }) => [name, help])),
    Options: columns(optionRows({ ...command.options, ...COMMON_OPTIONS })),
    Examples: command.examples.map((example) => `chambers ${example}`),
  });
}

function usageOf({ name, args, options }: Command): string {
  const required = Object.entries(options).flatMap(([option, { isRequired, value }]) =>
    isRequired ? [`--${option}=${value}`] : [],
  );
  return [name, ...args.map(argument), ...required].join(' ');
}

function argument({ name, arity }: ArgumentSpec): string {
  return arity === undefined ? name : `[${name}]${arity === 'rest' ? '…' : ''}`;
}

function optionRows(options: Command['options']): (readonly [string, string])[] {
  return Object.entries(options).map(([name, { value, help }]) => [
    value === undefined ? `--${name}` : `--${name}=${value}`,
    help,
  ]);
}

function columns(rows: readonly (readonly [string, string])[]): readonly string[] {
  const width = Math.min(Math.max(0, ...rows.map(([left]) => left.length)), 34);
  return rows.map(([left, right]) => `${left.padEnd(width)}  ${right}`);
}

function sections(parts: Readonly<Record<string, readonly string[]>>): string {
  return Object.entries(parts)
    .filter(([, lines]) => lines.length > 0)
    .map(([title, lines]) =>
      [paint('bold', title), ...lines.map((line) => (line === '' ? '' : `  ${line}`))].join('\n'),
    )
    .join('\n\n');
}
