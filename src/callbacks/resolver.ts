// Resolves host names without getaddrinfo, which would block a thread of the process while a name server is silent.
import { Resolver } from 'node:dns/promises';

/** Rejects if the name has no address or the signal aborts. */
export type Resolve = (hostname: string, signal: AbortSignal) => Promise<readonly string[]>;

const QUERY_MS_MAX = 2_000;

export const resolveName: Resolve = async (hostname, signal) => {
  const resolver = new Resolver({ timeout: QUERY_MS_MAX, tries: 2 });
  const cancel = () => resolver.cancel();
  signal.addEventListener('abort', cancel);
  try {
    const answers = await Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)]);
    const addresses = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
    const [failed] = answers.flatMap((answer) => (answer.status === 'rejected' ? [answer.reason] : []));
    if (addresses.length === 0 && failed !== undefined) throw failed;
    return addresses;
  } finally {
    signal.removeEventListener('abort', cancel);
  }
};
