// Routes of the signed moves, built from their slices.
import type { CreateCommand, MoveCommand, PersonalityCommand, RetireCommand } from '../forum/commands.ts';
import { changePersonality } from '../moves/change-personality.ts';
import type { Move } from '../moves/move.ts';
import { moves } from '../moves/registry.ts';
import { retire } from '../moves/retire.ts';
import type { Endpoint } from '../vocabulary/endpoint.ts';
import { parseId } from '../vocabulary/parameters.ts';
import { readBody } from './request.ts';
import type { Route } from './route.ts';

type Command = MoveCommand | CreateCommand | PersonalityCommand | RetireCommand;

export const moveRoutes: readonly Route[] = Object.values({ ...moves, changePersonality, retire }).map((move: Move) => {
  // Each slice is named after its command, but the slice's type can't express that.
  const operation = move.operation as Command['operation'];
  return {
    ...moveEndpoint(move),
    handle: async ({ auth, forum, receipts, maxBodyBytes }, c) => {
      const body = await readBody(c, maxBodyBytes);
      const caller = await auth.authenticateMove(c, body);
      const chamberId = parseId(c.req.param('id'));
      const event = await forum.submit<Command>({ operation, chamberId, body, caller });
      return receipts.respond(c, { value: move.answer(event), event, received: caller.received });
    },
  };
});

export function moveEndpoint({ operation, method, path, ...move }: Move): Endpoint & { readonly signed: 'always' } {
  const { tag, summary, description, answered, errors } = move.texts;
  const name = operation.charAt(0).toUpperCase() + operation.slice(1);
  const response = { name: `${name}Response`, schema: move.response, example: move.example.answer };
  return {
    method: method === 'POST' ? 'post' : 'put',
    path,
    operationId: operation,
    tag,
    summary,
    description,
    signed: 'always',
    body: { name: `${name}Body`, schema: move.body, example: move.example.body, isOptional: move.isBodyOptional },
    responses: { 200: { description: answered, content: response } },
    errors: path.includes(':id') ? ['FORUM_ERR_PHASE', 'FORUM_ERR_HISTORY', ...errors] : errors,
  };
}
