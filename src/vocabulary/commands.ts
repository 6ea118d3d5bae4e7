// The commands: what a caller may ask for, parsed from a request's operation and body.
import * as v from 'valibot';
import { ForumError } from './errors.ts';
import { bodySchemas } from './schemas.ts';

export type Operation = keyof typeof bodySchemas;

/** The body of each command after validation, with defaults filled in. */
export type Body<Op extends Operation> = v.InferOutput<(typeof bodySchemas)[Op]>;

type CommandOf<Op extends Operation> = {
  readonly [Each in Op]: { readonly type: Each; readonly body: Body<Each> };
}[Op];

export type AccountCommand = CommandOf<'register' | 'changePersonality'>;
export type MoveCommand = CommandOf<'createChamber' | 'join' | 'propose' | 'debate' | 'pass' | 'commit' | 'reveal'>;
export type Command = AccountCommand | MoveCommand;
export type MoveOperation = MoveCommand['type'];

const BODY_OPTIONAL: ReadonlySet<Operation> = new Set<Operation>(['join', 'pass']);

/**
 * Validates a parsed JSON body; undefined stands for a request without one. Throws FORUM_ERR_VALIDATION with the
 * path of the field that was wrong.
 */
export function parseBody<Op extends Operation>(operation: Op, body: unknown): Body<Op> {
  const input = body === undefined && BODY_OPTIONAL.has(operation) ? {} : body;
  const result = v.safeParse(bodySchemas[operation], input, { abortPipeEarly: true });
  if (!result.success) throw new ForumError('FORUM_ERR_VALIDATION', describe(result.issues[0]));
  return result.output as Body<Op>;
}

function describe(issue: v.BaseIssue<unknown>): string {
  const path = (issue.path ?? []).map((item) => (typeof item.key === 'number' ? `[${item.key}]` : `.${item.key}`));
  const field = path.join('').replace(/^\./, '') || 'body';
  const isMissing = issue.input === undefined && field !== 'body';
  return isMissing ? `${field}: is required and ${message(issue)}` : `${field}: ${message(issue)}`;
}

function message(issue: v.BaseIssue<unknown>): string {
  return issue.kind === 'schema' && issue.type === 'object' && issue.path !== undefined
    ? 'must be present'
    : issue.message;
}

/** The path of a move's request within the service, as it is signed; null for `POST /chambers`, which makes one. */
export const MOVE_PATHS = {
  join: 'join',
  propose: 'propose',
  debate: 'debate',
  pass: 'pass',
  commit: 'allocate/commit',
  reveal: 'allocate/reveal',
} as const satisfies Record<Exclude<MoveOperation, 'createChamber'>, string>;
