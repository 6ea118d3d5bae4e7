import { describe, expect, it } from 'vitest';
import { ERROR_CODES, ForumError, statusOf } from '../../src/vocabulary/errors.ts';

describe('an error', () => {
  it.each([
    ['FORUM_ERR_VALIDATION', 400],
    ['FORUM_ERR_COMMITMENT', 400],
    ['FORUM_ERR_CALLBACK', 400],
    ['FORUM_ERR_SIGNATURE', 401],
    ['FORUM_ERR_PHASE', 403],
    ['FORUM_ERR_TURN', 403],
    ['FORUM_ERR_MEMBER', 403],
    ['FORUM_ERR_ADMISSION', 403],
    ['FORUM_ERR_FORBIDDEN', 403],
    ['FORUM_ERR_NOT_FOUND', 404],
    ['FORUM_ERR_METHOD', 405],
    ['FORUM_ERR_CONFLICT', 409],
    ['FORUM_ERR_TOO_LARGE', 413],
    ['FORUM_ERR_MEDIA_TYPE', 415],
    ['FORUM_ERR_RATE', 429],
    ['FORUM_ERR_INTERNAL', 500],
    ['FORUM_ERR_UNAVAILABLE', 503],
  ] as const)('the error %s has status %i', (code, status) => {
    expect([statusOf(code), new ForumError(code, '').status]).toEqual([status, status]);
    expect(ERROR_CODES).toContain(code);
  });

  it('an error is sent with its code and detail', () => {
    const error = new ForumError('FORUM_ERR_TURN', 'it is the turn of bob');
    expect(JSON.stringify(error.toBody())).toBe('{"error":"FORUM_ERR_TURN","detail":"it is the turn of bob"}');
    expect(error).toMatchObject({
      name: 'ForumError',
      retryAfterSeconds: undefined,
      expected: undefined,
      cause: undefined,
    });
  });

  it('an error is sent with its data members but without its cause', () => {
    const expected = { signatureBase: '"@method": POST', contentDigest: 'sha-256=::' };
    const data = { expected, serviceTime: '2030-01-01T00:00:00.000Z', head: 7 };
    const options = { ...data, retryAfterSeconds: 2, cause: new Error('inner') };
    const error = new ForumError('FORUM_ERR_SIGNATURE', 'no', options);
    expect(error.toBody()).toEqual({ error: 'FORUM_ERR_SIGNATURE', detail: 'no', ...data, retryAfter: 2 });
    expect([error.retryAfterSeconds, error.cause]).toEqual([options.retryAfterSeconds, options.cause]);
  });
});
