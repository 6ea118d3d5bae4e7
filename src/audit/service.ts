// A service as the auditor sees it: its lines, page by page, and the responses to compare them with. None of it is trusted.
import { parseJson } from '../vocabulary/json.ts';
import type { JsonValue, Millis } from '../vocabulary/values.ts';
import { type HttpResponse, type RawLine, readLines, readText, send, Unreachable, UnusableInput } from './input.ts';

const PAGE_LINES = 1_000;
const LIST_CHAMBERS = 200;
const OK = 200;
const NOT_FOUND = 404;
const SERVER_ERROR = 500;
/** Too many requests, and temporarily unavailable. */
const BUSY: readonly number[] = [429, 503];
const ATTEMPTS_MAX = 10;
const WAIT_SECONDS_MAX = 30;
const DETAIL_CHARS_MAX = 200;

export interface JsonResponse {
  readonly body: JsonValue;
  /** The service's clock by its Date header, to the second. */
  readonly at: Millis;
}

export class AuditedService {
  readonly #baseUrl: string;
  #logId: string | null = null;

  constructor(baseUrl: string) {
    this.#baseUrl = baseUrl.replace(/\/+$/, '');
  }

  /** The log that the lines belong to, as far as the service says. */
  get logId(): string | null {
    return this.#logId;
  }

  /** The lines after the event, up to the head of the log. */
  async *lines(chamberId: number, after: number): AsyncGenerator<RawLine, void, undefined> {
    for (let cursor = after, isHead = false; !isHead; ) {
      const response = await this.#get(`/chambers/${chamberId}/events?after=${cursor}&limit=${PAGE_LINES}`);
      this.#requireSameLog(response.headers.get('log-id'));
      const before = cursor;
      for await (const line of readLines(response.chunks)) {
        cursor++;
        yield line;
      }
      isHead = cursor - before < PAGE_LINES;
    }
  }

  async read(path: string): Promise<JsonResponse> {
    const response = await this.#get(path);
    const at = Date.parse(response.headers.get('date') ?? '');
    const text = await readText(response);
    try {
      return { body: parseJson(text), at: Number.isNaN(at) ? Date.now() : at };
    } catch {
      throw new UnusableInput(`its response to GET ${path} is not JSON: is it a chamber service?`);
    }
  }

  /** Every chamber of the service, oldest first. */
  async chamberIds(): Promise<readonly number[]> {
    const chamberIds: number[] = [];
    for (let isLast = false; !isLast; ) {
      const before = chamberIds.length === 0 ? '' : `&before=${chamberIds.at(-1)}`;
      const { body } = await this.read(`/chambers?limit=${LIST_CHAMBERS}${before}`);
      const page = Array.isArray(body) ? body.map(chamberIdOf) : [];
      chamberIds.push(...page);
      isLast = page.length < LIST_CHAMBERS;
    }
    return chamberIds.reverse();
  }

  /** A busy service says when to retry. */
  async #get(path: string): Promise<HttpResponse> {
    for (let attempt = 1; ; attempt++) {
      const response = await send(this.#baseUrl + path);
      const { status, headers } = response;
      if (status === OK) return response;
      const detail = detailOf(await readText(response));
      if (!BUSY.includes(status) || attempt === ATTEMPTS_MAX) throw errorOf(path, status, detail);
      const seconds = Number(headers.get('retry-after') ?? 1) || 1;
      await new Promise((resolve) => setTimeout(resolve, Math.min(Math.max(seconds, 1), WAIT_SECONDS_MAX) * 1_000));
    }
  }

  #requireSameLog(logId: string | null): void {
    this.#logId ??= logId;
    if (this.#logId !== logId) throw new UnusableInput(`its log was replaced during the audit (log ${logId})`);
  }
}

function errorOf(path: string, status: number, detail: string): Error {
  if (status === NOT_FOUND) return new UnusableInput(`GET ${path} returned 404: ${detail}`);
  const problem = `GET ${path} returned status ${status}: ${detail}`;
  return status >= SERVER_ERROR ? new Unreachable(problem) : new UnusableInput(problem);
}

function chamberIdOf(chamber: unknown): number {
  const { chamberId } = (chamber ?? {}) as { readonly chamberId?: unknown };
  if (typeof chamberId === 'number') return chamberId;
  throw new UnusableInput('it lists chambers without an id: is it a chamber service?');
}

function detailOf(text: string): string {
  try {
    const { detail } = parseJson(text) as { readonly detail?: unknown };
    if (typeof detail === 'string') return detail.slice(0, DETAIL_CHARS_MAX);
  } catch {
    // Not a problem document of ours: reported as it is.
  }
  return text.slice(0, DETAIL_CHARS_MAX);
}
