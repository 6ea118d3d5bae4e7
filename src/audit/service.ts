// A service as the auditor sees it: pages of lines and the answers to compare them with. Nothing it says is believed.
import { setTimeout } from 'node:timers/promises';
import { parseJson } from '../vocabulary/parse-json.ts';
import type { JsonValue, Millis } from '../vocabulary/values.ts';
import { type Answer, ask, readText } from './fetching.ts';
import { type RawLine, readLines } from './line-reader.ts';
import { Unreachable, UnusableInput } from './unusable-input.ts';

const PAGE_LINES = 1_000;
const LIST_CHAMBERS = 200;
const OK = 200;
const NOT_FOUND = 404;
const SERVER_ERROR = 500;
/** Too many requests, and unavailable for a while. */
const BUSY: readonly number[] = [429, 503];
const ATTEMPTS_MAX = 10;
const WAIT_SECONDS_MAX = 30;

export interface ServiceAnswer {
  readonly body: JsonValue;
  /** The service's clock by its Date header, to the second. */
  readonly at: Millis;
}

export class AuditedService {
  readonly #baseUrl: string;
  #logId: string | undefined;

  constructor(baseUrl: string) {
    this.#baseUrl = baseUrl.replace(/\/+$/, '');
  }

  get logId(): string | undefined {
    return this.#logId;
  }

  /** The lines after the event, up to the head of the log. */
  async *lines(chamberId: number, after: number): AsyncGenerator<RawLine, void, undefined> {
    for (let cursor = after, isHead = false; !isHead; ) {
      const answer = await this.#get(`/chambers/${chamberId}/events?after=${cursor}&limit=${PAGE_LINES}`);
      this.#requireSameLog(answer.headers.get('log-id') ?? undefined);
      const before = cursor;
      for await (const line of readLines(answer.chunks)) {
        cursor++;
        yield line;
      }
      isHead = cursor - before < PAGE_LINES;
    }
  }

  async read(path: string): Promise<ServiceAnswer> {
    const answer = await this.#get(path);
    const at = Date.parse(answer.headers.get('date') ?? '');
    const text = await readText(answer);
    try {
      return { body: parseJson(text), at: Number.isNaN(at) ? Date.now() : at };
    } catch {
      throw new UnusableInput(`it answers GET ${path} with no JSON: is it a chamber service?`);
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

  /** A service that is busy says when to come again, and is given the time. */
  async #get(path: string): Promise<Answer> {
    for (let attempt = 1; ; attempt++) {
      const answer = await ask(this.#baseUrl + path);
      if (answer.status === OK) return answer;
      const detail = detailOf(await readText(answer));
      const isBusy = BUSY.includes(answer.status) && attempt < ATTEMPTS_MAX;
      if (!isBusy) throw refused(path, answer.status, detail);
      await setTimeout(waitMillis(answer.headers));
    }
  }

  #requireSameLog(logId: string | undefined): void {
    this.#logId ??= logId;
    if (this.#logId !== logId) throw new UnusableInput(`its log was replaced during the audit (log ${logId})`);
  }
}

function waitMillis(headers: Headers): Millis {
  const seconds = Number(headers.get('retry-after') ?? 1);
  return Math.min(Math.max(seconds, 1) || 1, WAIT_SECONDS_MAX) * 1_000;
}

function refused(path: string, status: number, detail: string): Error {
  if (status === NOT_FOUND) return new UnusableInput(`GET ${path} finds nothing: ${detail}`);
  const problem = `it answers GET ${path} with status ${status}: ${detail}`;
  return status >= SERVER_ERROR ? new Unreachable(problem) : new UnusableInput(problem);
}

function chamberIdOf(chamber: unknown): number {
  const { chamberId } = (chamber ?? {}) as { readonly chamberId?: unknown };
  if (typeof chamberId === 'number') return chamberId;
  throw new UnusableInput('it lists chambers without an id: is it a chamber service?');
}

const DETAIL_CHARS_MAX = 200;

function detailOf(text: string): string {
  try {
    const { detail } = parseJson(text) as { readonly detail?: unknown };
    if (typeof detail === 'string') return detail.slice(0, DETAIL_CHARS_MAX);
  } catch {
    // Not one of ours: shown as it is.
  }
  return text.slice(0, DETAIL_CHARS_MAX);
}
