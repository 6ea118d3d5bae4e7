// A service as the auditor sees it: pages of lines and the answers to compare them with. Nothing it says is believed.
import { parseJson } from '../vocabulary/parse-json.ts';
import type { JsonValue, Millis } from '../vocabulary/values.ts';
import { type Answer, ask, readText } from './fetching.ts';
import { type RawLine, readLines } from './line-reader.ts';
import { UnusableInput } from './unusable-input.ts';

const PAGE_LINES = 1_000;
const LIST_CHAMBERS = 200;
const NOT_FOUND = 404;
const OK = 200;

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

  async #get(path: string): Promise<Answer> {
    const answer = await ask(this.#baseUrl + path);
    if (answer.status === OK) return answer;
    const detail = await readText(answer);
    if (answer.status === NOT_FOUND) throw new UnusableInput(`GET ${path} finds nothing: ${detailOf(detail)}`);
    throw new UnusableInput(`it answers GET ${path} with status ${answer.status}: ${detailOf(detail)}`);
  }

  #requireSameLog(logId: string | undefined): void {
    this.#logId ??= logId;
    if (this.#logId !== logId) throw new UnusableInput(`its log was replaced during the audit (log ${logId})`);
  }
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
