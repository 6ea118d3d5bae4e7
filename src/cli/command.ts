// What a command is: a row of the table from which parsing and help are made.

export interface OptionSpec {
  /** The name of its value in the help; absent for a switch. */
  readonly value?: string;
  readonly help: string;
  readonly isRequired?: boolean;
}

export interface ArgumentSpec {
  readonly name: string;
  readonly help: string;
  /** `rest` takes all that are left. */
  readonly arity?: 'optional' | 'rest';
}

export interface Input {
  readonly args: readonly string[];
  /** Values by option name; a switch that is set holds ''. */
  readonly options: Readonly<Record<string, string | undefined>>;
  readonly isJson: boolean;
}

export interface Command {
  /** e.g. `chamber create`. */
  readonly name: string;
  readonly summary: string;
  readonly args: readonly ArgumentSpec[];
  readonly options: Readonly<Record<string, OptionSpec>>;
  /** Without the leading `chambers`. */
  readonly examples: readonly string[];
  /** Resolves to the exit code; nothing stands for 0. */
  run(input: Input): Promise<number | undefined> | Promise<void>;
}

export const URL_OPTION = {
  url: { value: 'URL', help: 'base URL of the service (or CHAMBERS_URL; http://127.0.0.1:8787 without both)' },
} as const satisfies Record<string, OptionSpec>;

export const KEY_OPTIONS = {
  ...URL_OPTION,
  key: { value: 'FILE', help: 'key file of the agent (or CHAMBERS_KEY_FILE; ~/.chambers/agent.json without both)' },
} as const satisfies Record<string, OptionSpec>;

export const CHAMBER_ARGUMENT: ArgumentSpec = { name: 'ID', help: 'the chamber, e.g. 1' };
