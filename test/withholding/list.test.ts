// The operator's list of texts to withhold.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { addToWithholdList, parseWithholdList, readWithholdList } from '../../src/withholding/list.ts';
import { Signer } from '../kit/signer.ts';
import { temporaryFolder } from '../kit/temporary.ts';

const { did } = new Signer();

describe('a list of texts to withhold', () => {
  it('a list of texts has one event of a chamber or account per line, with a reason, and may have comments and blank lines', () => {
    const text = `# court order 7\n\n3:17 law # Monday\n${did}:2\tpersonal-data\r\n`;
    expect(parseWithholdList(text)).toEqual({
      entries: [
        { stream: 3, eventId: 17, reason: 'law', line: 3 },
        { stream: did, eventId: 2, reason: 'personal-data', line: 4 },
      ],
      badLines: [],
    });
  });

  it.each([
    ['3:17', 'the reason must be one of personal-data, secret, abuse, law'],
    ['3:17 rude', 'the reason must be one of personal-data, secret, abuse, law'],
    ['3:17 law and order', 'must be <chamberId or DID>:<eventId> <reason>'],
    ['3 law', 'must be <chamberId or DID>:<eventId> <reason>'],
    ['3:0 law', 'must be <chamberId or DID>:<eventId> <reason>'],
    ['3:1e3 law', 'must be <chamberId or DID>:<eventId> <reason>'],
    ['0:1 law', 'must be <chamberId or DID>:<eventId> <reason>'],
    [':1 law', 'must be <chamberId or DID>:<eventId> <reason>'],
    ['did:key:z6Mk:1 law', 'must be <chamberId or DID>:<eventId> <reason>'],
    [`${did} law`, 'must be <chamberId or DID>:<eventId> <reason>'],
    ['1:1 secret', '1:1 is already on line 1, which counts'],
  ])('reading a list of texts reports the line “%s”, and keeps the others', (line, problem) => {
    const { entries, badLines } = parseWithholdList(`1:1 law\n${line}\n2:2 abuse`);
    expect(badLines).toEqual([{ line: 2, problem }]);
    expect(entries.map((entry) => entry.line)).toEqual([1, 3]);
  });

  it('the error for a missing list of texts says what to do', () => {
    expect(() => readWithholdList('/nowhere/withhold')).toThrow(
      'cannot read the list of texts to withhold /nowhere/withhold: ENOENT; create an empty file',
    );
  });
});

describe('an edit of the list', () => {
  it('an edit adds each event to the list once, keeps everything else, and creates a missing file', async () => {
    const path = join(temporaryFolder(), 'withhold');
    const [first, second] = [
      { stream: 3, eventId: 17 },
      { stream: did, eventId: 2 },
    ];
    expect(await addToWithholdList(path, [first, first], 'law')).toEqual({ added: ['3:17'], listed: [] });
    writeFileSync(path, '# Monday\n3:17 law # order 7');
    const listed = { ...first, reason: 'law', line: 2 };
    const added = [`${did}:2`];
    expect(await addToWithholdList(path, [first, second], 'abuse')).toEqual({ added, listed: [listed] });
    expect(readFileSync(path, 'utf8')).toBe(`# Monday\n3:17 law # order 7\n${did}:2 abuse\n`);
    expect(await addToWithholdList(path, [first, second], 'abuse')).toMatchObject({
      added: [],
      listed: [first, second],
    });
  });
});
