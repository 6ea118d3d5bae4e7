// One attempt at a request: signs it, sends it and reads the response within limits. A response from a gateway or captive portal counts as
// a network failure, whatever its status.
import { acceptReceipt, RECEIPT_TAG, type Receipt, type ReceiptRequest } from '../crypto/receipt.ts';
import { httpInstantOf } from '../reading/http-date.ts';
import { parseBoundedJson, type ReadLimits } from '../reading/limits.ts';
import { type OpenResponse, openResponse } from '../reading/response.ts';
import { listOf } from '../reading/shape.ts';
import type { Millis } from '../vocabulary/values.ts';
import { type Call, PAGE_LINES_MAX, type Page, type Service, type SignedRequest } from './call.ts';
import { ClientError } from './error.ts';
import { connectionFailure, type Failure, readFailure } from './failure.ts';
import { ANY_OBJECT } from './shapes.ts';
import { newNonce, signatureHeaders } from './signing.ts';
import { steadyMillis } from './time.ts';

export interface ExchangeResult<Result> {
  readonly value: Result;
  readonly headers: Headers;
  /** Present if a receipt was requested and the response is signed. */
  readonly receipt?: Receipt | undefined;
}

type PreparedRequest = Awaited<ReturnType<typeof prepare>>;

export async function prepare({ baseUrl, clock, limits }: Service, call: Call) {
  const { method, path, body, signer, sent, beforeSend, wantsReceipt = false, accept } = call;
  const { as = 'json', linesMax = PAGE_LINES_MAX, shape = ANY_OBJECT, waitMillis = 0 } = call;
  const url = new URL(baseUrl + path).href;
  const text = sent?.body ?? (body === undefined ? '' : JSON.stringify(body));
  const signedAt = clock.now();
  const signedAtSteady = steadyMillis(clock.local);
  const headers: Readonly<Record<string, string>> = sent?.headers ?? {
    ...(signer && signatureHeaders(signer, { method, targetUri: url, body: text }, signedAt)),
    ...(wantsReceipt && { 'Accept-Signature': acceptReceipt(newNonce()) }),
    ...(body && { 'Content-Type': 'application/json' }),
    ...(accept !== undefined && { Accept: accept }),
    ...(as === 'nothing' && { Accept: 'text/event-stream' }),
  };
  if (signer !== undefined) await beforeSend?.({ method, path, body: text, headers });
  const init: RequestInit = { method, headers, ...(text !== '' && { body: text }) };
  const receiptRequest = toReceiptRequest(method, url, headers);
  const wholeShape = as === 'list' ? listOf(shape) : as === 'json' ? shape : undefined;
  const wholeMillisMax = limits.responseMillisMax + waitMillis;
  return { url, init, as, linesMax, wholeShape, signedAt, signedAtSteady, receiptRequest, wholeMillisMax };
}

function toReceiptRequest(method: string, targetUri: string, headers: SignedRequest['headers']) {
  if (headers['Accept-Signature'] === undefined) return undefined;
  const field = (name: string) => headers[name] ?? '';
  const [contentDigest, signatureInput, signature] = [
    field('Content-Digest'),
    field('Signature-Input'),
    field('Signature'),
  ];
  return { method, targetUri, contentDigest, signatureInput, signature };
}

/** Sends the request once. Throws the signal's reason; returns any other failure. */
export async function attempt(
  service: Service,
  request: PreparedRequest,
  signal?: AbortSignal,
): Promise<ExchangeResult<unknown> | Failure> {
  signal?.throwIfAborted();
  const { url, init, wholeMillisMax } = request;
  const sentAt = service.clock.local.now();
  let response: OpenResponse | undefined;
  try {
    response = await openResponse(service.fetch, url, init, { signal, wholeMillisMax });
    const outcome = await readOutcome(service, request, response);
    if (!('isForeign' in outcome)) noteContact(service, response, sentAt);
    return outcome;
  } catch (cause) {
    signal?.throwIfAborted();
    return connectionFailure(service, cause, unknownOutcomeNote(init));
  } finally {
    response?.close();
  }
}

async function readOutcome(
  service: Service,
  { url, init, as, linesMax, wholeShape, receiptRequest }: PreparedRequest,
  response: OpenResponse,
): Promise<ExchangeResult<unknown> | Failure> {
  const { limits } = service;
  const { headers, ok } = response;
  if (isForeign(response, as)) return readFailure(service, response, undefined);
  const text = receiptRequest && ok ? await response.text(limits) : undefined;
  const value =
    text === undefined ? await readBody(response, { as, linesMax }, limits) : parseBoundedJson(text, limits);
  if (!ok || value === undefined) return readFailure(service, response, value);
  const problem = wholeShape?.(value, '');
  if (problem === undefined) {
    return { value, headers, receipt: receiptRequest && readReceipt(receiptRequest, response, text ?? '') };
  }
  const detail = `the response of ${url} can’t be used: ${problem}${unknownOutcomeNote(init)}`;
  return { error: new ClientError('CLIENT_ERR_ANSWER', detail), isUnknown: false };
}

function unknownOutcomeNote({ method }: RequestInit): string {
  return method === 'GET' ? '' : '; the request may have been accepted';
}

const MEDIA_TYPES: Readonly<Partial<Record<NonNullable<Call['as']>, string>>> = {
  page: 'application/x-ndjson',
  text: 'text/markdown',
  nothing: 'text/event-stream',
};

/** Returns whether the media type shows that a captive portal or gateway responded, whose page must not be read as lines of a log. */
function isForeign({ headers, ok }: OpenResponse, as: NonNullable<Call['as']>): boolean {
  const type = headers.get('Content-Type') ?? '';
  const expected = ok ? MEDIA_TYPES[as] : undefined;
  return expected === undefined ? type.startsWith('text/html') : type !== '' && !type.startsWith(expected);
}

/** Records that the service itself responded, with its log and its time. */
function noteContact({ clock, contact }: Service, { headers }: OpenResponse, sentAt: Millis): void {
  contact.isMade = true;
  contact.logId = headers.get('Log-Id') ?? contact.logId;
  // The header has whole seconds. Browsers can read it only if the service exposes it.
  const earliest = httpInstantOf(headers.get('Date'));
  if (Number.isNaN(earliest)) return;
  clock.learn({ earliest, latest: earliest + 999, isFromHeader: true }, { sentAt, receivedAt: clock.local.now() });
}

/** Returns undefined if JSON is expected and the body is not JSON. */
async function readBody(
  response: OpenResponse,
  { as, linesMax }: Required<Pick<Call, 'as' | 'linesMax'>>,
  limits: ReadLimits,
): Promise<unknown> {
  if (!response.ok || as === 'json') return await response.json(limits);
  if (as === 'list') return await response.list(limits);
  if (as === 'text') return await response.text(limits);
  return as === 'page' ? await readPage(response, linesMax, limits) : null;
}

async function readPage(response: OpenResponse, linesMax: number, limits: ReadLimits): Promise<Page> {
  const lines: string[] = [];
  let bytes = 0;
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  for await (const line of response.lines(limits)) {
    if (!line.isEnded) throw new Error('the response was cut off in the middle of a line');
    lines.push(decoder.decode(line.bytes));
    bytes += line.bytes.length;
    if (lines.length === linesMax) return { lines, isEnd: response.headers.get('Stream-End') === 'true' };
    if (bytes >= limits.pageBytesMax) return { lines, isEnd: false };
  }
  return { lines, isEnd: true };
}

/** Returns undefined for an unsigned response, because earlier releases and proxies may omit the signature. */
function readReceipt(request: ReceiptRequest, { status, headers }: OpenResponse, body: string): Receipt | undefined {
  const field = (name: string) => headers.get(name) ?? '';
  const [event, signatureInput] = [headers.get('Event'), field('Signature-Input')];
  if (event === null || !signatureInput.includes(RECEIPT_TAG)) return undefined;
  const [contentDigest, logId, signature] = [field('Content-Digest'), field('Log-Id'), field('Signature')];
  return { request, response: { status, body, contentDigest, event, logId, signatureInput, signature } };
}
