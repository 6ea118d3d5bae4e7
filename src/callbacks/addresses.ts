// Decides which URLs and addresses may be called. URLs, host names and DNS responses are untrusted.
import ipaddr from 'ipaddr.js';

export const LOCALHOST = 'localhost';
/** Matches names that can resolve only to this machine or its local network. */
const LOCAL_NAME = /^[^.]*\.?$|\.localhost\.?$/;

export interface AddressRules {
  /** Allows http URLs and addresses of this machine. */
  readonly isDevelopment: boolean;
}

/** The message names the problem with the URL, but does not reveal the addresses that a name resolves to. */
export class AddressNotAllowed extends Error {}

const URL_CHARS_MAX = 2_048;
const PRIVILEGED_PORT_MAX = 1_023;
/** Ports of mail, shells, remote desktops, databases and control interfaces. The Fetch standard blocks most of them. */
const FORBIDDEN_PORTS: ReadonlySet<number> = new Set([
  ...[1080, 1433, 1521, 1719, 1720, 1723, 2049, 2222, 2375, 2376, 2525, 3306, 3389, 3659, 4045, 4190, 5060, 5061, 5432],
  ...[5900, 5985, 5986, 6000, 6379, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080, 11211, 27017],
]);

/** Parses and normalises a callback URL, and removes its fragment. Throws AddressNotAllowed. */
export function parseCallbackUrl(text: string, rules: AddressRules): URL {
  if (text.length > URL_CHARS_MAX) throw new AddressNotAllowed(`must have at most ${URL_CHARS_MAX} characters`);
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined) throw new AddressNotAllowed('must be an absolute URL');
  if (url.protocol !== 'https:' && !(rules.isDevelopment && url.protocol === 'http:'))
    throw new AddressNotAllowed(`must begin with https://, not ${url.protocol}`);
  if (url.username !== '' || url.password !== '')
    throw new AddressNotAllowed('must not contain a user name or a password');
  const port = Number(url.port);
  if (url.port !== '' && port <= PRIVILEGED_PORT_MAX)
    throw new AddressNotAllowed(`must have the default port or one above ${PRIVILEGED_PORT_MAX}, not port ${port}`);
  if (FORBIDDEN_PORTS.has(port))
    throw new AddressNotAllowed(`must have another port: ${port} is commonly used for a protocol other than HTTP`);
  url.hash = '';
  const literal = addressIn(url);
  if (literal !== undefined) requireAllowed([literal], rules);
  else if (LOCAL_NAME.test(url.hostname) && !(rules.isDevelopment && url.hostname === LOCALHOST))
    throw new AddressNotAllowed(`must have a public name with a dot, not ${url.hostname}`);
  return url;
}

/** Returns the IP address in the URL; undefined if the host is a name. The URL parser normalises all forms of IPv4. */
export function addressIn({ hostname }: URL): string | undefined {
  const address = hostname.replace(/^\[|\]$/g, '');
  return ipaddr.isValid(address) ? address : undefined;
}

/** Throws AddressNotAllowed unless every address may be called. */
export function requireAllowed(addresses: readonly string[], rules: AddressRules): void {
  if (addresses.length === 0) throw new AddressNotAllowed('its host name has no address');
  if (!addresses.every((address) => isAllowed(address, rules)))
    throw new AddressNotAllowed('must resolve to public addresses only');
}

function isAllowed(text: string, { isDevelopment }: AddressRules): boolean {
  // An address with a zone id is link-local.
  if (text.includes('%') || !ipaddr.isValid(text)) return false;
  const address = ipaddr.parse(text);
  const range = address.range();
  if (isDevelopment && range === 'loopback') return true;
  // IPv6 addresses that embed an IPv4 address have other ranges, and all global unicast IPv6 addresses are in 2000::/3.
  return range === 'unicast' && (address instanceof ipaddr.IPv4 || address.match(GLOBAL_UNICAST));
}

const GLOBAL_UNICAST = ipaddr.IPv6.parseCIDR('2000::/3');
