import { describe, expect, it } from 'vitest';
import { publicKeyOf } from '../../src/keys/private-key.ts';
import { formatVerifierKey, NOTE_KEY_TYPES, toNoteKey } from '../../src/tlog/note.ts';
import { parsePolicy } from '../../src/tlog/policy.ts';

const LOG_KEY = verifierKey('forum.test/log/1', NOTE_KEY_TYPES.ed25519);
const WITNESS_KEY = verifierKey('witness.test/w1', NOTE_KEY_TYPES.cosignature);

function verifierKey(name: string, type: (typeof NOTE_KEY_TYPES)[keyof typeof NOTE_KEY_TYPES]): string {
  const seed = new Uint8Array(32);
  seed.set(Buffer.from(name).subarray(0, 32));
  return formatVerifierKey(toNoteKey(name, type, publicKeyOf(seed)));
}

describe('a policy', () => {
  const witnessLine = (name: string) => `witness ${name} ${verifierKey(`${name}.test`, NOTE_KEY_TYPES.cosignature)}`;

  it('a policy combines nested groups as in the specification’s example', () => {
    const text = [
      '# two of X and one of Y',
      `log ${LOG_KEY} https://log.test/`,
      ...['X1', 'X2', 'X3', 'Y1', 'Y2'].map(witnessLine),
      'group X 2 X1 X2 X3',
      '  group\tY any Y1 Y2  ',
      'group X-and-Y all X Y',
      '',
      'quorum X-and-Y',
    ].join('\n');
    const { logs, witnesses, isQuorum } = parsePolicy(`${text}\n`);
    expect([logs.length, witnesses.map(({ name }) => name)]).toEqual([1, ['X1', 'X2', 'X3', 'Y1', 'Y2']]);
    expect(isQuorum(new Set(['X1', 'X3', 'Y2']))).toBe(true);
    expect(isQuorum(new Set(['X1', 'X2', 'X3']))).toBe(false);
    expect(isQuorum(new Set(['X1', 'Y1', 'Y2']))).toBe(false);
    expect(parsePolicy('quorum none\n').isQuorum(new Set())).toBe(true);
  });

  it.each([
    ['no quorum', 'log'],
    ['an unknown keyword', 'quorums none'],
    ['two quorums', 'quorum none\nquorum none'],
    ['an undefined name', 'quorum X'],
    ['a group with a threshold above its size', `${witnessLine('X')}\ngroup G 2 X\nquorum G`],
    ['a repeated member', `${witnessLine('X')}\ngroup G any X X\nquorum G`],
    ['the name none', `${witnessLine('none')}\nquorum none`],
    ['a log key as a witness key', `witness X ${LOG_KEY}\nquorum none`],
    ['a witness key as a log key', `log ${WITNESS_KEY}\nquorum none`],
    ['a repeated key', `log ${LOG_KEY}\nlog ${LOG_KEY}\nquorum none`],
    ['a carriage return', 'quorum none\r\n'],
  ])('a policy with %s is rejected', (_, text) => {
    expect(() => parsePolicy(text)).toThrow();
  });
});
