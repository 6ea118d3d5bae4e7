// `chambers doctor URL`: checks a running service from outside, as its clients reach it.
import { isIP } from 'node:net';
import { connect } from 'node:tls';
import { WebSocket } from 'ws';
import { CLIENT_NETWORK, SERVICE_NAME } from '../http/service.ts';
import { certificateInstantOf, httpInstantOf } from '../reading/http-date.ts';
import { READ_LIMITS } from '../reading/limits.ts';
import { openResponse } from '../reading/response.ts';
import { tlsHint } from '../reading/tls-hint.ts';
import { type Finding, ok, problem, warning } from '../service/checks/finding.ts';

const PROBE_MILLIS = 3_000;
/** The default of SIGNATURE_MAX_SKEW_SECONDS. */
const SERVICE_CLOCK_SECONDS_MAX = 60;

export async function examineService(
  url: string,
  env: Readonly<Record<string, string | undefined>>,
): Promise<readonly Finding[]> {
  const responses = await examineResponses(url).catch((error) => [problem('service', error.message)]);
  if (responses.some(({ level }) => level === 'problem')) return [...examineUrl(url, env), ...responses];
  const reached = await Promise.all([examineCertificate(url), examineWebSockets(url), examineClientAddress(url)]);
  return [...examineUrl(url, env), ...responses, ...reached.flat()];
}

/** Clients sign the URL that they use, but the service verifies signatures over PUBLIC_URL. */
function examineUrl(url: string, { PUBLIC_URL }: Readonly<Record<string, string | undefined>>): readonly Finding[] {
  const addresses = PUBLIC_URL?.split(',').flatMap((address) => address.trim() || []) ?? [];
  if (addresses.length === 0 || addresses.some((address) => isSameOrigin(address, url))) return [];
  return [
    problem('service', `signed requests are for ${addresses.join(' or ')}, not for ${url}`, { variable: 'PUBLIC_URL' }),
  ];
}

function isSameOrigin(one: string, other: string): boolean {
  return URL.canParse(one) && URL.canParse(other) && new URL(one).origin === new URL(other).origin;
}

async function examineResponses(url: string): Promise<readonly Finding[]> {
  const base = baseOf(url);
  const info = await probe(`${base}/`);
  const { name, version } = info.body;
  if (name !== SERVICE_NAME) throw new Error(`${url} is not a ${SERVICE_NAME}: use its base URL (PUBLIC_URL)`);
  const aheadSeconds = Math.round((httpInstantOf(info.response.headers.get('date')) - Date.now()) / 1000);
  const [health, ready, chambers] = await Promise.all(
    ['/health', '/ready', '/chambers?limit=1'].map((path) => probe(base + path)),
  );
  const [newest] = (chambers?.body ?? []) as readonly { readonly chamberId?: number }[];
  const preview = newest && (await probe(`${base}/chambers/${newest.chamberId}/merkle-preview`));
  const logId = preview?.response.headers.get('log-id') ?? 'shown with its first chamber';
  const { ok: isHealthy, clock } = health?.body ?? {};
  const { reason } = Object(clock) as { readonly reason?: string };
  const isReady = ready?.response.ok === true || ready?.response.status === 404;
  return [
    ok('service', `version ${version}, logId ${logId}`),
    isHealthy === true ? ok('service', 'healthy') : problem('service', `not healthy: ${textOf(health?.body)}`),
    isReady ? ok('service', 'ready for moves') : problem('service', `not ready: ${textOf(ready?.body)}`),
    ...(reason === undefined ? [] : [problem('clock', `the service does not trust its clock: ${reason}`)]),
    Math.abs(aheadSeconds) <= SERVICE_CLOCK_SECONDS_MAX
      ? ok('clock', 'the service and this machine agree on the time')
      : problem(
          'clock',
          `the service's clock is ${aheadSeconds} s ahead of this machine's: signatures made here may be rejected`,
        ),
  ];
}

/** Reports the client address that the service sees for this machine. Earlier versions do not return the address. */
async function examineClientAddress(url: string): Promise<readonly Finding[]> {
  const [network, how] = await clientAs(url, {});
  if (how === undefined) return [];
  const isBehindProxy = new URL(url).protocol === 'https:';
  if (how === 'client') {
    const [named] = await clientAs(url, { 'X-Forwarded-For': FORGED, Forwarded: `for=${FORGED}` });
    if (named !== FORGED) return [ok('service', `the proxy forwards this machine's address, ${network}`)];
    return [
      problem(
        'service',
        'the proxy forwards X-Forwarded-For or Forwarded from clients, so clients can forge their address',
      ),
    ];
  }
  if (!isBehindProxy) return [ok('service', `sees this machine as ${network}; no proxy forwarded an address`)];
  if (how === 'trusted') {
    return [
      warning(
        'service',
        `the proxy ${network} forwards no address outside TRUSTED_PROXIES: run this from a machine that is not a proxy`,
      ),
    ];
  }
  const detail =
    how === 'direct'
      ? `all clients are seen as ${network}: the proxy is not listed`
      : `the proxy ${network} forwards no client address`;
  return [problem('service', detail, { variable: how === 'direct' ? 'TRUSTED_PROXIES' : null })];
}

/** An address reserved for documentation (RFC 5737), which no client has. */
const FORGED = '192.0.2.87';

async function clientAs(
  url: string,
  headers: Readonly<Record<string, string>>,
): Promise<readonly (string | undefined)[]> {
  const { response } = await probe(`${baseOf(url)}/ready`, headers);
  return (response.headers.get(CLIENT_NETWORK) ?? '').split(', ');
}

async function examineWebSockets(url: string): Promise<readonly Finding[]> {
  const socket = new WebSocket(`${baseOf(url).replace(/^http/, 'ws')}/events`, {
    handshakeTimeout: PROBE_MILLIS,
    maxPayload: MESSAGE_BYTES_MAX,
  });
  const reason = await new Promise<string | undefined>((resolve) => {
    socket.once('open', () => resolve(undefined));
    socket.once('error', ({ message }) => resolve(message));
  });
  socket.on('error', () => {}).terminate();
  if (reason === undefined) return [ok('service', 'WebSockets work')];
  return [problem('service', `WebSockets fail (${reason}): the proxy must pass on the headers Upgrade and Connection`)];
}

const MESSAGE_BYTES_MAX = 65_536;
const CERTIFICATE_DAYS_MIN = 14;
const DAY_MS = 86_400_000;

async function examineCertificate(url: string): Promise<readonly Finding[]> {
  const { protocol, hostname, port } = new URL(url);
  if (protocol !== 'https:') return [];
  const host = hostname.replace(/^\[|\]$/g, '');
  const servername = isIP(host) === 0 ? { servername: host } : {};
  const socket = connect({ host, port: Number(port || 443), ...servername, timeout: PROBE_MILLIS });
  const validTo = await new Promise<string>((resolve, reject) => {
    socket.once('secureConnect', () => resolve(socket.getPeerCertificate().valid_to));
    socket.once('timeout', () => reject(new Error('no response')));
    socket.once('error', reject);
  }).catch(() => '');
  socket.on('error', () => {}).destroy();
  const end = certificateInstantOf(validTo);
  const days = Math.floor((end - Date.now()) / DAY_MS);
  // examineResponses reports a certificate that can't be verified.
  if (Number.isNaN(days)) return [];
  const detail = `the certificate is valid for ${days} days, until ${new Date(end).toISOString()}`;
  return [days < CERTIFICATE_DAYS_MIN ? warning('service', detail) : ok('service', detail)];
}

function baseOf(url: string): string {
  return url.replace(/\/+$/, '');
}

const PROBE_LIMITS = { ...READ_LIMITS, responseBytesMax: 256 * 1024 };
const BODY_CHARS_SHOWN = 500;

function textOf(body: unknown): string {
  return JSON.stringify(body).slice(0, BODY_CHARS_SHOWN);
}

export async function isChamberService(url: string): Promise<boolean> {
  const info = await probe(`${url}/`).catch(() => undefined);
  return info?.body['name'] === SERVICE_NAME;
}

async function probe(url: string, headers: Readonly<Record<string, string>> = {}) {
  try {
    const init = { headers: { accept: 'application/json', ...headers } };
    const response = await openResponse(fetch, url, init, { wholeMillisMax: PROBE_MILLIS });
    const body = (await response.json(PROBE_LIMITS)) as Readonly<Record<string, unknown>> | undefined;
    if (body === undefined || body === null) throw new Error(`the response with status ${response.status} is not JSON`);
    return { response, body };
  } catch (error) {
    const { message, cause } = error as Error;
    const { code = '', message: reason } = (cause ?? { message }) as NodeJS.ErrnoException;
    const hint = tlsHint(code);
    throw new Error(`no service responds at ${url}: ${hint === undefined ? reason : code + hint}`, { cause: error });
  }
}
