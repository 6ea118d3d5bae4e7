// Every pattern that is applied to a header, a query, a path or a body is linear. Each input gets, at its size limit, a text that makes patterns
// backtrack: a repeated text after the beginning of a match and before the end of a failed one. It must take little longer than the same number of letters.
import { describe, expect, it } from 'vitest';
import { splitNotes } from '../../src/audit/service/checkpoint.ts';
import { parseEventField, wantedReceipt } from '../../src/crypto/receipt.ts';
import { publicKeyOf } from '../../src/keys/private-key.ts';
import { PublishedLog } from '../../src/mirror/published-log.ts';
import { ALICE } from '../../src/moves/samples.ts';
import { parseCheckpoint } from '../../src/tlog/checkpoint.ts';
import { formatVerifierKey, NOTE_KEY_TYPES, parseNote, parseVerifierKey, toNoteKey } from '../../src/tlog/note.ts';
import { parsePolicy } from '../../src/tlog/policy.ts';
import { parseTlogProof } from '../../src/tlog/proof.ts';
import { parseTilePath } from '../../src/tlog/tile.ts';
import { TEXT_CHARS_MAX } from '../../src/vocabulary/schemas.ts';
import { instantOf } from '../../src/vocabulary/values.ts';
import { escapeInvisible, visibleLine, visibleText } from '../../src/vocabulary/visible.ts';
import { appendDebates } from '../kit/debates.ts';
import { debating, type Running, run, runDebating, sendRaw } from '../kit/service.ts';

const HEADER_CHARS = 15_000;
const BODY_CHARS = 60_000;
/** A quadratic pattern takes about 90 ms for a header, and a second for a body. */
const SLOWER_MAX = 8;
const SLACK_MS = 40;
/** The fastest run counts, because the machine does other work. */
const TRIES_MAX = 12;

const REPEATED = [
  ' ',
  '\t',
  ',',
  ';',
  ' ,',
  ', ',
  '; ',
  ';q=0',
  ';q=0.0 ',
  ';a="',
  '"',
  '\\"',
  '=',
  '"="',
  'a/b,',
  'a/b;c=d;',
  '*/',
  '0',
  '9',
  '.',
  '1.',
  ':',
  '=:',
  '(',
  ')',
  '("',
  '[',
  '{',
  '`',
  '%',
  '%25',
  '%2540',
  '+',
  '-',
  '_',
  'a=',
  'for=',
  'for="',
  '2030-01-01T',
  'W/"a"',
];

/** The worst texts between the beginning and the end of a match. */
function worst(text: string, chars: number): readonly string[] {
  const repeated = text.repeat(Math.ceil(chars / text.length)).slice(0, chars);
  return [`x${repeated}x`, `;${repeated}!`, `"${repeated}`];
}

/** In milliseconds of CPU time, independent of the machine's load. */
async function fastest(act: () => Promise<unknown>, enough: number): Promise<number> {
  let best = Number.POSITIVE_INFINITY;
  for (let attempt = 0; attempt < TRIES_MAX && best > enough; attempt++) {
    const before = process.cpuUsage();
    await act();
    best = Math.min(best, process.cpuUsage(before).user / 1_000);
  }
  return best;
}

/** Each repeated text in one of its forms; PATTERNS=all tries every form. */
const TEXTS_PER_REPEATED = 3;
const isSelected = (index: number) =>
  process.env['PATTERNS'] === 'all' ||
  index % TEXTS_PER_REPEATED === Math.floor(index / TEXTS_PER_REPEATED) % TEXTS_PER_REPEATED;

/** Returns the texts that take longer than letters. */
async function slowTexts(chars: number, send: (text: string) => Promise<unknown>): Promise<readonly string[]> {
  const letters = await fastest(() => send('x'.repeat(chars)), 0);
  const enough = SLOWER_MAX * letters + SLACK_MS;
  const slow: string[] = [];
  for (const text of REPEATED.flatMap((each) => worst(each, chars)).filter((_, index) => isSelected(index))) {
    const millis = await fastest(() => send(text), enough);
    if (millis > enough) slow.push(`${text.slice(0, 12)}… ${Math.round(millis)} ms, letters ${Math.round(letters)} ms`);
  }
  return slow;
}

function exchange({ url }: Running, head: string, body = ''): Promise<string> {
  const length = `Content-Length: ${Buffer.byteLength(body)}\r\n`;
  return sendRaw(url, `${head}Connection: close\r\n${length}\r\n${body}`);
}

const HEADERS = [
  ['GET /docs', 'If-None-Match'],
  ['GET /docs', 'Accept-Encoding'],
  ['GET /chambers/1', 'Accept'],
  ['GET /chambers/1/transcript', 'Accept'],
  ['GET /events', 'Last-Event-ID'],
  ['GET /me', 'Signature-Input'],
  ['GET /me', 'Signature'],
  ['GET /me', 'Content-Digest'],
  ['GET /me', 'X-Dev-Did'],
  ['POST /chambers', 'Content-Type'],
  ['POST /chambers', 'Content-Encoding'],
  ['POST /mcp', 'Origin'],
  ['GET /health', 'Forwarded'],
  ['GET /health', 'X-Forwarded-For'],
  ['GET /chambers/1/stream', 'Upgrade'],
] as const;

const LOG_ID = '0'.repeat(32);
const TARGETS = [
  '/chambers/',
  '/ideas/',
  '/agents/',
  '/assets/',
  '/',
  '/chambers?phase=',
  '/chambers?member=',
  '/chambers?',
  '/chambers/1?rpc=',
  '/chambers/1/events?after=',
  '/events?after=',
  '/ideas/x?chamberId=',
  '/?before=',
  '/SKILL.md?',
  '/log/',
  `/log/${LOG_ID}/checkpoint`,
  `/log/${LOG_ID}/tile/`,
  `/log/${LOG_ID}/tile/entries/`,
  `/log/${LOG_ID}/tile/0/000.p/`,
  `/log/${LOG_ID}/index?after=`,
  `/log/${LOG_ID}/index?limit=`,
  '/chambers/1/stream?notes=',
  '/chambers/1/events/',
  `/agents/${ALICE}/events/`,
];

const MEMBERS = [
  ['/chambers', 'name'],
  ['/chambers', 'topic'],
  ['/chambers', 'lobbyDeadline'],
  ['/register', 'pubkeyHex'],
  ['/register', 'walletAddress'],
  ['/register', 'operatorEmail'],
  ['/register', 'label'],
  ['/register', 'walletSignature'],
  ['/register', 'issuedAt'],
  ['/agents/ALICE/retire', 'walletSignature'],
  ['/agents/ALICE/retire', 'issuedAt'],
  ['/chambers/1/debate', 'seen'],
  ['/chambers/1/propose', 'ticker'],
  ['/chambers/1/allocate/commit', 'commitment'],
  ['/chambers/1/allocate/reveal', 'salt'],
] as const;

describe('the longest', () => {
  it.each(HEADERS)('%s is served in linear time with any value of the header %s', async (request, name) => {
    const running = await run({ TRUSTED_PROXIES: '127.0.0.0/8', DEV_ALLOW_UNSIGNED: 'true' });
    await debating(running);
    // Signature and Signature-Input are read only together.
    const other = name === 'Signature-Input' ? 'Signature: sig1=:x:\r\n' : '';
    const signed = `Signature-Input: ${SIGNATURE_INPUT}\r\nSignature: sig1=:${'A'.repeat(86)}==:\r\n`;
    const beside =
      name === 'Content-Digest' ? signed : name === 'Signature' ? `Signature-Input: ${SIGNATURE_INPUT}\r\n` : other;
    const body = request.startsWith('POST') ? '{}' : '';
    const type = name === 'Content-Encoding' || name === 'Origin' ? 'Content-Type: application/json\r\n' : '';
    const page = name === 'Accept-Encoding' ? 'Accept: text/html\r\n' : '';
    const send = (text: string) =>
      exchange(running, `${request} HTTP/1.1\r\nHost: localhost\r\n${page}${type}${beside}${name}: ${text}\r\n`, body);
    expect(await slowTexts(HEADER_CHARS, send)).toEqual([]);
  });

  it.each(TARGETS)('target %s… is read in linear time, whatever text follows', async (target) => {
    const running = await run();
    await debating(running);
    const own = target.replace(LOG_ID, running.service.forum.store.log.logId);
    const send = (text: string) =>
      exchange(running, `GET ${own}${encodedBlanks(text)} HTTP/1.1\r\nHost: x\r\nAccept: text/html\r\n`);
    expect(await slowTexts(HEADER_CHARS / 3, send)).toEqual([]);
  });

  it.each(['', '"', '{"name":"', '{"a":"', '[', '{"deadlines":{"lobbyDeadline":"'])(
    'body that begins with %s is read in linear time, whatever text follows',
    async (start) => {
      const { running, by } = await runDebating({ DEV_ALLOW_UNSIGNED: 'true' });
      const head = `POST /chambers HTTP/1.1\r\nHost: x\r\nX-Dev-Did: ${by.did}\r\nContent-Type: application/json\r\n`;
      const send = (text: string) => exchange(running, head, start + text);
      expect(await slowTexts(BODY_CHARS, send)).toEqual([]);
    },
  );

  it.each(MEMBERS)('body of %s is read in linear time with any text as its member %s', async (path, member) => {
    const { running, by } = await runDebating({ DEV_ALLOW_UNSIGNED: 'true' });
    const target = path.replace('ALICE', by.did);
    const head = `POST ${target} HTTP/1.1\r\nHost: x\r\nX-Dev-Did: ${by.did}\r\nContent-Type: application/json\r\n`;
    const send = (text: string) => exchange(running, head, JSON.stringify({ [member]: text }));
    expect(await slowTexts(BODY_CHARS / 3, send)).toEqual([]);
  });
});

describe('the longest text of an agent', () => {
  it.each(['/chambers/1/transcript', '/chambers/1'])(
    'the longest text of an agent is rendered in %s in linear time, whatever its characters',
    async (path) => {
      const { running, by, id } = await runDebating({ DEV_ALLOW_UNSIGNED: 'true' });
      await appendDebates(running, { did: by.did, chamberId: id, count: 100, bulk: 'x'.repeat(TEXT_CHARS_MAX) });
      const send = async (text: string) => {
        await appendDebates(running, { did: by.did, chamberId: id, count: 1, bulk: text });
        const after = ((await running.service.forum.chamber(id))?.state.lastEventId ?? 1) - 1;
        await exchange(
          running,
          `GET ${path}?after=${after} HTTP/1.1\r\nHost: x\r\nAccept: text/html, text/markdown\r\n`,
        );
      };
      expect(await slowTexts(TEXT_CHARS_MAX, send)).toEqual([]);
    },
  );
});

const WITNESS_KEY = formatVerifierKey(toNoteKey('a', NOTE_KEY_TYPES.cosignature, publicKeyOf(new Uint8Array(32))));

/** Parsers of untrusted texts about logs and witnesses. Each gets the worst texts where a match may begin. */
const READERS: readonly (readonly [name: string, read: (text: string) => unknown])[] = [
  ['Accept-Signature', wantedReceipt],
  ['components of an Accept-Signature', (text) => wantedReceipt(`a=(${text})`)],
  ['parameters of an Accept-Signature', (text) => wantedReceipt(`a=("@status");${text}`)],
  ['header Event', parseEventField],
  ['note', parseNote],
  ['signatures of a note', (text) => parseNote(`a\n1\n\n\u2014 a ${text}\n`)],
  ['checkpoint', parseCheckpoint],
  ['root of a checkpoint', (text) => parseCheckpoint(`a\n1\n${text}\n`)],
  ['file of checkpoints', splitNotes],
  ['file of checkpoints with an end', (text) => splitNotes(`a\n1\n${text}\n\n\u2014 a`)],
  ['verifier key', parseVerifierKey],
  ['public key of a verifier key', (text) => parseVerifierKey(`a+01234567+${text}`)],
  ['witness policy', (text) => ignoringErrors(() => parsePolicy(text))],
  ['group of a witness policy', (text) => ignoringErrors(() => parsePolicy(`group a any ${text}`))],
  ['URL of a witness', (text) => ignoringErrors(() => parsePolicy(`witness a ${WITNESS_KEY} http://a${text}`))],
  ['tlog-proof', parseTlogProof],
  ['hashes of a tlog-proof', (text) => parseTlogProof(`c2sp.org/tlog-proof@v1\nindex 1\n${text}\n\n`)],
  ['path of a tile', parseTilePath],
  ['index of a tile', (text) => parseTilePath(`tile/0/${text}000`)],
  ['address of a service', (text) => new PublishedLog(`http://a${text}`)],
  ['text that is shown', visibleLine],
  ['text of several lines that is shown', visibleText],
  ['JSON that is shown', escapeInvisible],
];
/** A linear pattern takes less than 60 ms, a quadratic one two seconds and more. */
const READER_CPU_MS_MAX = 500;
const REPEATED_IN_TEXTS = [
  '\n',
  '\n\n',
  'a\n',
  '\u2014 a AAAA\n',
  '\u2014 ',
  '/',
  '/x',
  'x000/',
  'A',
  '\r\n',
  '\u200b',
];

describe('the longest text', () => {
  it.each(READERS)('the longest text is parsed as a %s in linear time, whatever its characters', (_name, read) => {
    const texts = [...REPEATED, ...REPEATED_IN_TEXTS].flatMap((each) => worst(each, BODY_CHARS));
    const slow = texts.map((text) => [text.slice(0, 12), cpuMillis(() => read(text))] as const);
    expect(slow.filter(([, millis]) => millis > READER_CPU_MS_MAX)).toEqual([]);
  });
});

/** In CPU time, because a parser never waits. */
function cpuMillis(act: () => unknown): number {
  const before = process.cpuUsage();
  act();
  return process.cpuUsage(before).user / 1_000;
}

function ignoringErrors(read: () => unknown): unknown {
  try {
    return read();
  } catch {
    return undefined;
  }
}

it('a time with many digits and a line break is parsed as fast as letters', async () => {
  const digits = `2030-01-01T00:00:00.${'0'.repeat(BODY_CHARS)}\n`;
  expect(await fastest(async () => instantOf(digits), SLACK_MS)).toBeLessThanOrEqual(SLACK_MS);
});

const SIGNATURE_INPUT =
  'sig1=("@method" "@target-uri" "content-digest");created=1893456000;keyid="x";alg="ed25519";nonce="n"';

/** Encodes blanks, as a target must be printable ASCII without them. */
function encodedBlanks(text: string): string {
  return text.replaceAll(' ', '%20').replaceAll('\t', '%09').replaceAll('"', '%22').replaceAll('\\', '%5C');
}
