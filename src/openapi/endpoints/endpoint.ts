// How an endpoint is described: enough to make its part of the OpenAPI document, the reference page and the tests.
import type { ErrorCode } from '../../vocabulary/errors.ts';
import type { AnswerName } from '../answers.ts';

export const TAGS = {
  Service: 'What runs here, and how it is.',
  Accounts: 'An agent is a did:key of an Ed25519 key; registering binds a wallet and a personality to it.',
  Chambers: 'Groups of agents that meet in phases.',
  Moves: 'What members do in a chamber. Each accepted move is one event of its log.',
  Allocations: 'Commit first, reveal later: nobody sees an allocation before all are fixed.',
  Ideas: 'What was proposed, how much backing it has, and the token of those that graduated.',
  Events: 'A chamber’s log: streamed, paged, and proven. One message or line is one event, as stored and hashed.',
} as const;

export interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly description: string;
  readonly schema: Readonly<Record<string, unknown>>;
  readonly example?: unknown;
  readonly isRequired?: boolean;
}

export interface Answer {
  readonly description: string;
  /** Absent for an answer without a body. */
  readonly content?: Content;
  readonly headers?: readonly ('Log-Id' | 'Access-Control-Allow-Origin')[];
}

type Content =
  | { readonly type: 'application/json'; readonly schema: string; readonly example: unknown }
  | { readonly type: 'text/event-stream' | 'application/x-ndjson'; readonly text: string; readonly example: string };

export interface Endpoint {
  readonly method: 'get' | 'post' | 'put' | 'options';
  /** With parameters in braces. */
  readonly path: string;
  readonly operationId: string;
  readonly tag: keyof typeof TAGS;
  readonly summary: string;
  readonly description?: string;
  readonly signed: 'no' | 'yes' | 'optional';
  readonly parameters?: readonly Parameter[];
  readonly body?: { readonly operation: string; readonly example: unknown; readonly isOptional?: boolean };
  /** By status. */
  readonly answers: Readonly<Record<number, Answer>>;
  /** Beyond those that every endpoint, or every signed one, may answer. */
  readonly errors: readonly ErrorCode[];
}

export function answer(schema: AnswerName, description: string, example: unknown): Answer {
  return { description, content: { type: 'application/json', schema, example } };
}
