// The refusals as components: a schema and an example for each code.
import { ERROR_CODES, type ErrorCode } from '../vocabulary/errors.ts';
import { describeError, ERRORS, sentence } from './errors.ts';

const expected = {
  type: 'object',
  description: 'What the service would have verified, made from the request alone: compare it with what was signed.',
  properties: { signatureBase: { type: 'string' }, contentDigest: { type: 'string' } },
  required: ['signatureBase', 'contentDigest'],
  additionalProperties: false,
};

/** The component names of one code, which its schema and its example share. */
export function errorRefs(code: ErrorCode) {
  return { schema: { $ref: `#/components/schemas/${code}` }, example: { $ref: `#/components/examples/${code}` } };
}

export const errorComponents = {
  schemas: {
    ...Object.fromEntries(ERROR_CODES.map((code) => [code, errorSchema(code)])),
    Error: {
      description: 'Any refusal.',
      oneOf: ERROR_CODES.map((code) => errorRefs(code).schema),
      discriminator: { propertyName: 'error' },
    },
  },
  examples: Object.fromEntries(
    ERRORS.map(({ code, when, example }) => [code, { summary: sentence(when), value: example }]),
  ),
  responses: {
    Refused: {
      description: 'Refused before the endpoint was reached, e.g. 405 for another method.',
      content: {
        'application/json': {
          schema: { $ref: '#/components/schemas/Error' },
          examples: { FORUM_ERR_METHOD: errorRefs('FORUM_ERR_METHOD').example },
        },
      },
    },
  },
} as const;

function errorSchema(code: ErrorCode) {
  const { when, remedy, status } = describeError(code);
  return {
    type: 'object',
    description: `${status}. ${sentence(when)} ${sentence(remedy)}`,
    properties: {
      error: { type: 'string', const: code },
      detail: { type: 'string', description: 'for people' },
      ...(code === 'FORUM_ERR_SIGNATURE' ? { expected } : {}),
    },
    required: ['error', 'detail'],
    additionalProperties: false,
  };
}
