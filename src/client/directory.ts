// The service's key directory, and the keys by which this client's readers judge stubs.
import { DIRECTORY_PATH, type KeyDirectory, parseDirectory } from '../crypto/key-directory.ts';
import { StubReader } from '../crypto/stub-reader.ts';
import { instantOf } from '../vocabulary/values.ts';
import type { Withheld } from '../vocabulary/withheld.ts';
import type { Service } from './call.ts';
import { exchange } from './exchange.ts';

export async function readDirectory(service: Service, signal?: AbortSignal): Promise<KeyDirectory> {
  return parseDirectory(await exchange<unknown>(service, { method: 'GET', path: DIRECTORY_PATH }, signal));
}

/** Reads the directory before a stub is judged, if its key is not known yet. */
export async function prepareStub(service: Service, line: string, signal?: AbortSignal): Promise<void> {
  const [, keyid] = STUB_KEY.exec(line) ?? [];
  if (keyid === undefined || service.stubKeys.directory.has(keyid)) return;
  service.stubKeys.directory = await readDirectory(service, signal);
}

/** Of a stub in canonical form; any other one is rejected. */
const STUB_KEY = /,"withheld":\{"at":"[^"]*","key":"[^"]*","keyid":"([^"]*)","leaf":[^{}]*\}\}$/;

/** Takes stubs under keys of the service's directory, of the log that the service names. */
export function stubReader({ stubKeys, contact }: Service): StubReader {
  stubKeys.reader ??= new StubReader((withheld) => signerProblem(withheld, stubKeys.directory, contact.logId));
  return stubKeys.reader;
}

function signerProblem({ keyid, log, at }: Withheld, directory: KeyDirectory, logId: string | undefined) {
  if (logId !== undefined && log !== logId) return `is a stub of the log ${log}, not of ${logId}`;
  const key = directory.get(keyid);
  if (key === undefined) return 'is withheld under a key that is not in the key directory of the service';
  const seconds = instantOf(at) / 1_000;
  const { nbf = Number.NEGATIVE_INFINITY, exp = Number.POSITIVE_INFINITY } = key;
  return nbf <= seconds && seconds < exp ? undefined : `is withheld at ${at}, when its key was not in force`;
}
