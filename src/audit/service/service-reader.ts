// Reads a service's lines, page by page, and other responses. Nothing is trusted, and every response is bounded in size and time.
import * as v from 'valibot';
import { httpInstantOf } from '../../reading/http-date.ts';
import { LimitError, READ_LIMITS, type ReadLimits } from '../../reading/limits.ts';
import { type OpenResponse, openResponse } from '../../reading/response.ts';
import { backoffMillis, pause } from '../../reading/waiting.ts';
import { parseJson } from '../../vocabulary/json.ts';
import { id } from '../../vocabulary/schemas.ts';
import { type JsonValue, type Millis, withCommas } from '../../vocabulary/values.ts';
import {
  countLimited,
  INPUT_LIMITS,
  type InputLimits,
  lineLimited,
  type RawLine,
  Unreachable,
  UnusableInput,
} from '../line/input.ts';
import type { AuditPolicy } from '../policy.ts';

const PAGE_LINES = 1_000;
const LIST_CHAMBERS = 200;
/** The ids of this many chambers take 80 MB. */
const CHAMBERS_MAX = 10_000_000;
const TOO_MANY_CHAMBERS = `it lists more than ${withCommas(CHAMBERS_MAX)} chambers: select one with --chamber`;
const GAPS_NAMED_MAX = 1_000;
const OK = 200;
const CONFLICT = 409;
const SERVER_ERROR = 500;
const BUSY: readonly number[] = [429, 503];
const ATTEMPTS_MAX = 10;
const WAIT_SECONDS_MAX = 30;
const DETAIL_CHARS_MAX = 200;
/** A slow response may take this many timeouts in total. */
const TIMEOUTS_MAX = 20;
const REDIRECTS: readonly number[] = [301, 302, 303, 307, 308];
/** Leaves room for additional members in a service's views. */
const VIEW_BYTES_MIN = 1024 * 1024;
const BYTES_PER_CHAR_MAX = 6;
const CHAMBERS = v.array(v.object({ chamberId: id }));

export interface JsonResponse {
  readonly body: JsonValue;
  /** The Date header, to the second; NaN if absent. */
  readonly at: Millis;
}

export class Rejected extends UnusableInput {
  readonly status: number;

  constructor(problem: string, status: number) {
    super(problem);
    this.status = status;
  }
}

export class AuditedService {
  /** The Date header of the last page of lines; NaN if absent. */
  linesServedAt: Millis = Number.NaN;
  /** The log of the lines, according to the service. */
  logId: string | null = null;
  readonly #baseUrl: string;
  readonly #limits: InputLimits;

  constructor(baseUrl: string, limits: InputLimits = INPUT_LIMITS) {
    this.#baseUrl = baseUrl.replace(/\/+$/, '');
    this.#limits = limits;
  }

  lines(chamberId: number, after: number): AsyncGenerator<RawLine, void, undefined> {
    const limit = { linesMax: this.#limits.linesMax, option: '--max-lines', before: after };
    return countLimited(this.#pages(`/chambers/${chamberId}`, after), limit);
  }

  accountLines(did: string, after = 0): AsyncGenerator<RawLine, void, undefined> {
    const limit = { linesMax: this.#limits.accountLinesMax, option: '--max-account-lines', before: after };
    return countLimited(this.#pages(`/agents/${did}`, after), limit);
  }

  /** Reads aligned pages, so that a cache may serve them. */
  async *#pages(owner: string, after: number): AsyncGenerator<RawLine, void, undefined> {
    let isCacheable = true;
    /** The time of the first failure since the last line. */
    let stalledAt: number | undefined;
    for (let cursor = after, isHead = false; !isHead; ) {
      const limit = PAGE_LINES - (cursor % PAGE_LINES);
      const log: string =
        isCacheable && limit === PAGE_LINES && this.logId !== null ? `log=${encodeURIComponent(this.logId)}&` : '';
      const page = `${owner}/events?${log}after=${cursor}&limit=${limit}`;
      const response: OpenResponse = await this.#patiently(() => this.#get(page)).catch((error) => {
        throw log !== '' && error instanceof Rejected && error.status === CONFLICT ? replaced() : error;
      });
      const logId = response.headers.get('log-id');
      this.linesServedAt = httpInstantOf(response.headers.get('date'));
      this.logId ??= logId;
      if (this.logId !== logId) {
        response.close();
        throw replaced(logId);
      }
      const before = cursor;
      try {
        for await (const line of lineLimited(this.#reachable(response.lines(this.#limits)))) {
          cursor++;
          if (cursor - before > limit)
            throw new UnusableInput(`a page of its events has more than ${withCommas(limit)} lines`);
          yield line;
        }
      } catch (error) {
        if (cursor > before) stalledAt = undefined;
        stalledAt ??= performance.now();
        if (!(error instanceof Unreachable) || performance.now() - stalledAt >= this.#limits.patienceMillis)
          throw error;
        await pause(backoffMillis(0));
        continue;
      }
      stalledAt = undefined;
      // A cache may hold an outdated last page of an ended chamber, so the next request must reach the service itself.
      const isEnd = response.headers.get('stream-end') === 'true';
      isHead = cursor - before < limit && !(isEnd && isCacheable);
      isCacheable = !isEnd;
    }
  }

  async readText(path: string): Promise<string> {
    return await this.#patiently(async () => await this.#text(await this.#get(path)));
  }

  async readBytes(path: string): Promise<Uint8Array> {
    return await this.#patiently(async () => {
      const response = await this.#get(path);
      return await response.bytes(this.#limits).catch((error) => this.#fail(error));
    });
  }

  async read(path: string): Promise<JsonResponse> {
    return await this.#read(path, { ...READ_LIMITS, ...this.#limits }).catch((error) => this.#fail(error));
  }

  /** Reads a view of about `expectedChars` characters of JSON. Throws UnusableInput if the response is much longer. */
  async readView(path: string, expectedChars: number): Promise<JsonResponse> {
    const limits = {
      responseBytesMax: VIEW_BYTES_MIN + BYTES_PER_CHAR_MAX * expectedChars,
      jsonValuesMax: READ_LIMITS.jsonValuesMax + expectedChars,
    };
    return await this.#read(path, limits).catch((error) => {
      if (error instanceof LimitError) throw new UnusableInput(error.message);
      throw error;
    });
  }

  async #read(path: string, limits: Pick<ReadLimits, 'responseBytesMax' | 'jsonValuesMax'>): Promise<JsonResponse> {
    const { at, text } = await this.#patiently(async () => {
      const response = await this.#get(path);
      const served = httpInstantOf(response.headers.get('date'));
      const body = await response.text(limits).catch((error) => {
        throw error instanceof LimitError ? error : toUnreachable(this.#baseUrl, error);
      });
      return { at: served, text: body };
    });
    try {
      return { body: parseJson(text, limits.jsonValuesMax), at };
    } catch {
      throw new UnusableInput(`its response to GET ${path} is not JSON: is it a chamber service?`);
    }
  }

  /** Reads the list of chambers; returns the ids oldest first. Unless ids may be skipped, every gap down to 1 is a problem. */
  async chambers({
    allowSkippedIds = false,
  }: AuditPolicy = {}): Promise<{ readonly chamberIds: readonly number[]; readonly problems: readonly string[] }> {
    const chamberIds: number[] = [];
    const problems: string[] = [];
    let last: number | undefined;
    for (let isLast = false; !isLast; ) {
      const before = last === undefined ? '' : `&before=${last}`;
      const { body } = await this.read(`/chambers?limit=${LIST_CHAMBERS}${before}`);
      const page = v.safeParse(CHAMBERS, body);
      if (!page.success) throw new UnusableInput('it lists chambers without an id: is it a chamber service?');
      for (const { chamberId } of page.output) {
        if (last !== undefined && chamberId >= last) {
          problems.push(
            `the service lists chamber ${chamberId} after chamber ${last}: the rest of its list is not read`,
          );
          return { chamberIds: chamberIds.reverse(), problems };
        }
        if (last !== undefined && !allowSkippedIds) noteMissing(chamberId + 1, last - 1, problems);
        if (chamberIds.push(chamberId) > CHAMBERS_MAX) throw new UnusableInput(TOO_MANY_CHAMBERS);
        last = chamberId;
      }
      isLast = page.output.length < LIST_CHAMBERS;
    }
    if (last !== undefined && !allowSkippedIds) noteMissing(1, last - 1, problems);
    return { chamberIds: chamberIds.reverse(), problems };
  }

  /** Retries a request that can't reach the service, for example during a restart, for up to patienceMillis. */
  async #patiently<Result>(request: () => Promise<Result>): Promise<Result> {
    const until = performance.now() + this.#limits.patienceMillis;
    for (let failures = 0; ; failures++) {
      try {
        return await request();
      } catch (error) {
        const wait = backoffMillis(failures);
        if (!(error instanceof Unreachable) || performance.now() + wait > until) throw error;
        await pause(wait);
      }
    }
  }

  /** Retries after Retry-After if the service is busy. */
  async #get(path: string): Promise<OpenResponse> {
    for (let attempt = 1; ; attempt++) {
      const response = await this.#open(path);
      const { status, headers } = response;
      if (status === OK) return response;
      const text = detailOf(await this.#text(response)) || 'check the base URL';
      const detail = REDIRECTS.includes(status)
        ? `it redirects to ${headers.get('location')}: audit that address`
        : text;
      const problem = `GET ${path} returned ${status}: ${detail}`;
      if (!BUSY.includes(status) || attempt === ATTEMPTS_MAX)
        throw status >= SERVER_ERROR ? new Unreachable(problem) : new Rejected(problem, status);
      const seconds = Number(headers.get('retry-after') ?? 1) || 1;
      await new Promise((resolve) => setTimeout(resolve, Math.min(Math.max(seconds, 1), WAIT_SECONDS_MAX) * 1_000));
    }
  }

  async #open(path: string): Promise<OpenResponse> {
    const silenceMillisMax = this.#limits.timeoutSeconds * 1_000;
    const deadlines = { silenceMillisMax, wholeMillisMax: TIMEOUTS_MAX * silenceMillisMax };
    return await openResponse(fetch, this.#baseUrl + path, {}, deadlines).catch((error) => this.#fail(error));
  }

  async #text(response: OpenResponse): Promise<string> {
    return await response.text(this.#limits).catch((error) => this.#fail(error));
  }

  async *#reachable(lines: AsyncIterable<RawLine>): AsyncGenerator<RawLine, void, undefined> {
    try {
      yield* lines;
    } catch (error) {
      if (error instanceof LimitError) throw error;
      this.#fail(error);
    }
  }

  #fail(error: unknown): never {
    if (error instanceof Unreachable || error instanceof UnusableInput) throw error;
    if (error instanceof LimitError) throw new Unreachable(`a response exceeds a limit: ${error.message}`);
    throw toUnreachable(this.#baseUrl, error);
  }
}

function replaced(logId: string | null = null): UnusableInput {
  return new UnusableInput(`its log was replaced during the audit${logId === null ? '' : ` (log ${logId})`}`);
}

function noteMissing(from: number, to: number, problems: string[]): void {
  if (from > to || problems.length >= GAPS_NAMED_MAX) return;
  problems.push(`the service does not list ${from === to ? `chamber ${from}` : `chambers ${from} to ${to}`}`);
}

function detailOf(text: string): string {
  try {
    const { detail } = parseJson(text, READ_LIMITS.jsonValuesMax) as { readonly detail?: unknown };
    if (typeof detail === 'string') return detail.slice(0, DETAIL_CHARS_MAX);
  } catch {
    // The body is not an error of this service, so it is reported unchanged.
  }
  return text.slice(0, DETAIL_CHARS_MAX);
}

/** Names only the host, because the rest of a URL may contain credentials. */
function toUnreachable(url: string, error: unknown): Unreachable {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  const reason = cause instanceof Error ? cause.message || cause.name : String(cause);
  return new Unreachable(`${new URL(url).host} can’t be reached: ${reason}`);
}
