// The service's key directory, and the verification of stubs with its keys.
import { DIRECTORY_PATH, type KeyDirectory, parseDirectory } from '../crypto/key-directory.ts';
import { StubReader } from '../crypto/stub-reader.ts';
import type { ForumEvent } from '../vocabulary/events.ts';
import { instantOf } from '../vocabulary/values.ts';
import type { Withheld } from '../vocabulary/withheld.ts';
import type { Service, Stubs } from './call.ts';
import { exchange } from './exchange.ts';

export async function readDirectory(service: Service, signal?: AbortSignal): Promise<KeyDirectory> {
  return parseDirectory(await readKeys(service, signal));
}

async function readKeys(service: Service, signal?: AbortSignal): Promise<unknown> {
  return await exchange<unknown>(service, { method: 'GET', path: DIRECTORY_PATH }, signal);
}

/** Matches the end of a stub in canonical form, the only form that is accepted. */
const STUB_KEY = /,"withheld":\{"at":"[^"]*","key":"[^"]*","keyid":"([^"]*)","leaf":[^{}]*\}\}$/;

/** If the line is a stub with an unknown key, reads the directory, so that the stub can be verified. */
export async function prepareStub(service: Service, line: string, signal?: AbortSignal): Promise<void> {
  if (!line.endsWith('}}')) return;
  const [, keyid] = STUB_KEY.exec(line) ?? [];
  if (keyid !== undefined && !service.stubs.knows(keyid)) service.stubs.learn(await readKeys(service, signal));
}

/** Accepts stubs of the log that the service names, signed with keys in its directory. */
export class DirectoryStubs implements Stubs {
  readonly #contact: Service['contact'];
  readonly #reader = new StubReader((withheld) => this.#problemOf(withheld));
  #directory: KeyDirectory = new Map();

  constructor(contact: Service['contact']) {
    this.#contact = contact;
  }

  knows(keyid: string): boolean {
    return this.#directory.has(keyid);
  }

  learn(directory: unknown): void {
    this.#directory = parseDirectory(directory);
  }

  leafOf(line: Uint8Array, event: ForumEvent): Uint8Array {
    return this.#reader.leafOf(line, event);
  }

  #problemOf({ keyid, log, at }: Withheld): string | undefined {
    const { logId = log } = this.#contact;
    if (log !== logId) return `is a stub of the log ${log}, not of ${logId}`;
    const key = this.#directory.get(keyid);
    if (key === undefined) return "is withheld under a key that is not in the service's key directory";
    const seconds = instantOf(at) / 1_000;
    const { nbf = Number.NEGATIVE_INFINITY, exp = Number.POSITIVE_INFINITY } = key;
    return nbf <= seconds && seconds < exp ? undefined : `was withheld at ${at}, when its key was not in force`;
  }
}
