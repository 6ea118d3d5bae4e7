// The clients use the leaf of a stub only if a key in the service's directory has signed the stub.
import { describe, expect, it } from 'vitest';
import { ForumClient, type VerifiedLine } from '../../src/client/index.ts';
import { leafHash } from '../../src/crypto/merkle.ts';
import { toHex } from '../../src/vocabulary/values.ts';
import { HOUR, START } from '../kit/clock.ts';
import { python, runPython } from '../kit/python.ts';
import { COMMENT, LINES, LOG, serveWith, stubOf } from './served-stubs.ts';

const READ_ALL = `
import sys
from chambers import ChamberError, Reader
try:
    lines = list(Reader(sys.argv[1]).history(1))
    print(len(lines), lines[9].leaf, lines[9].event["payload"]["comment"])
except ChamberError as error:
    print(error.code, error.detail)
`;

async function readAll(url: string): Promise<string> {
  try {
    const lines: VerifiedLine[] = [];
    for await (const line of new ForumClient(url).history(1)) lines.push(line);
    const { leaf, event } = lines[COMMENT - 1] ?? {};
    return `${lines.length} ${leaf} ${event?.type === 'chamber.debated' && event.payload.comment}`;
  } catch (error) {
    const { code, detail } = error as { readonly code: string; readonly detail: string };
    return `${code} ${detail}`;
  }
}

const READ = `${LINES.length} ${toHex(leafHash(Buffer.from(LINES[COMMENT - 1] as string)))} [withheld]`;
const stub = stubOf(COMMENT);
const CASES: readonly (readonly [
  title: string,
  line: string,
  keys: readonly object[] | undefined,
  read: string | RegExp,
])[] = [
  ['continues after a stub with the leaf of the original line', stub, undefined, READ],
  [
    'rejects a stub with a different text',
    stub.replace('[withheld]', 'Who fills them?'),
    undefined,
    /^CLIENT_ERR_CHAIN .*text left in/,
  ],
  [
    'rejects a stub with a different stance',
    stub.replace('"against"', '"for"'),
    undefined,
    /^CLIENT_ERR_CHAIN .*does not verify/,
  ],
  [
    'rejects a stub signed with a key that the directory lacks',
    stub,
    [],
    /^CLIENT_ERR_CHAIN .*not in the service.s key directory/,
  ],
  [
    'rejects a stub dated before its key was valid',
    stubOf(COMMENT, { at: START - HOUR }),
    undefined,
    /^CLIENT_ERR_CHAIN .*was not in force/,
  ],
  [
    'rejects a stub of another log',
    stubOf(COMMENT, { log: LOG.replaceAll('c', 'd') }),
    undefined,
    /^CLIENT_ERR_CHAIN .*of the log/,
  ],
  [
    'rejects a stub of a different type',
    stub.replace('chamber.debated', 'chamber.passed'),
    undefined,
    /^CLIENT_ERR_CHAIN /,
  ],
];

describe('the client', () => {
  it.each(CASES)('%s', async (_title, line, keys, read) => {
    expect(await readAll(await serveWith(line, keys))).toMatch(read);
  });
});

describe('the Python client', () => {
  python.each(CASES)('%s', async (_title, line, keys, read) => {
    expect((await runPython(READ_ALL, [await serveWith(line, keys)])).trim()).toMatch(read);
  });
});
