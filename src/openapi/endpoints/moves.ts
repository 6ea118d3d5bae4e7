// The signed moves as endpoints, made from their slices.
import type { Move } from '../../moves/move.ts';
import { accountMoves, chamberMoves, moves } from '../../moves/registry.ts';
import type { Endpoint } from './endpoint.ts';
import { chamberId } from './parameters.ts';

/** Of accounts: registering may be signed, everything else has to be. */
export const [registerEndpoint, personalityEndpoint] = [
  { ...endpointOf(accountMoves.register), signed: 'optional' },
  endpointOf(accountMoves.changePersonality),
] as const satisfies readonly Endpoint[];

export const createChamberEndpoint = endpointOf(moves.createChamber);

export const moveEndpoints: readonly Endpoint[] = Object.values(chamberMoves).map((move: Move) => {
  const endpoint = endpointOf(move);
  return {
    ...endpoint,
    parameters: [chamberId],
    errors: ['FORUM_ERR_NOT_FOUND', 'FORUM_ERR_PHASE', ...endpoint.errors],
  };
});

function endpointOf({ operation, method, path, texts, example, isBodyOptional = false }: Move): Endpoint {
  const { tag, summary, description, answered, errors } = texts;
  return {
    method: method === 'POST' ? 'post' : 'put',
    path: path.replace(':id', '{id}'),
    operationId: operation,
    tag,
    summary,
    ...(description === undefined ? {} : { description }),
    signed: 'yes',
    body: { operation, example: example.body, isOptional: isBodyOptional },
    answers: {
      200: {
        description: answered,
        content: { type: 'application/json', schema: responseName(operation), example: example.answer },
      },
    },
    errors,
  };
}

/** The component name of a move's response. */
export function responseName(operation: string): string {
  return `${operation.charAt(0).toUpperCase()}${operation.slice(1)}Response`;
}
