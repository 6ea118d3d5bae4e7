// Attributes a request to a network: the socket's, or the one that a trusted proxy reports. Used for limits, never for signatures.
import type { IncomingMessage } from 'node:http';
import { BlockList, isIP } from 'node:net';

/**
 * Returns the client's network: `192.0.2.1`, or the /64 of an IPv6 address. `isProxied`: the peer is a trusted proxy, so the next request may
 * be from a different client. `isNamed`: the proxy named the client.
 */
export function clientNetwork(
  trustedProxies: BlockList,
  { socket, headers }: Pick<IncomingMessage, 'socket' | 'headers'>,
) {
  const peer = socket.remoteAddress ?? '';
  const isProxied = isTrusted(trustedProxies, peer);
  const client = isProxied ? clientAddress(trustedProxies, headers) : undefined;
  return { network: networkOf(client ?? peer), isProxied, isNamed: client !== undefined };
}

export type ClientNetwork = ReturnType<typeof clientNetwork>;

/** Whether the request claims to be forwarded. */
export function isForwarded({ headers }: Pick<IncomingMessage, 'headers'>): boolean {
  return headers.forwarded !== undefined || headers['x-forwarded-for'] !== undefined;
}

/** Accepts `address` and `address/prefix`; throws a TypeError for anything else. */
export function toBlockList(cidrs: readonly string[]): BlockList {
  const list = new BlockList();
  for (const cidr of cidrs) {
    const [address = '', prefix, ...rest] = cidr.split('/');
    const family = isIP(address) === 6 ? 'ipv6' : 'ipv4';
    const bits =
      prefix === undefined ? (family === 'ipv6' ? 128 : 32) : Number(/^\d{1,3}$/.test(prefix) ? prefix : Number.NaN);
    if (isIP(address) === 0 || rest.length > 0) throw new TypeError(`${cidr} is not an address in CIDR notation`);
    list.addSubnet(address, bits, family);
  }
  return list;
}

/** The prefix of an IPv4 address on an IPv6 socket. */
const MAPPED = '::ffff:';

function isTrusted(trusted: BlockList, address: string): boolean {
  const plain = address.startsWith(MAPPED) && address.includes('.') ? address.slice(MAPPED.length) : address;
  return isIP(plain) !== 0 && trusted.check(plain, isIP(plain) === 6 ? 'ipv6' : 'ipv4');
}

/** Returns the last address that is not a trusted proxy. The client can forge every address before it. */
function clientAddress(trusted: BlockList, headers: IncomingMessage['headers']): string | undefined {
  const hops = forwardedHops(headers);
  for (let at = hops.length - 1; at >= 0; at--) {
    const hop = hops[at] as string;
    if (isIP(hop) === 0) return undefined;
    if (!isTrusted(trusted, hop)) return hop;
  }
  return undefined;
}

function forwardedHops({ forwarded, 'x-forwarded-for': xForwardedFor }: IncomingMessage['headers']): readonly string[] {
  if (forwarded !== undefined) {
    return forwarded.split(',').map((element) => withoutPort(/(?:^|;)\s*for=("?)([^";]*)\1/i.exec(element)?.[2] ?? ''));
  }
  return (xForwardedFor === undefined ? [] : [xForwardedFor].flat()).join(',').split(',').map(withoutPort);
}

/** Accepts `192.0.2.1:80`, `[2001:db8::1]:80`, and both without a port. */
function withoutPort(text: string): string {
  const hop = text.trim();
  const [, bracketed] = /^\[([^\]]*)\](?::\d+)?$/.exec(hop) ?? [];
  return bracketed ?? hop.replace(/^(\d+\.\d+\.\d+\.\d+):\d+$/, '$1');
}

const GROUPS = 8;
const NETWORK_GROUPS = 4;

/** Returns `192.0.2.1` (also for `::ffff:192.0.2.1`) or `2001:db8:0:1::/64`; the text itself if it is not an address. */
function networkOf(address: string): string {
  if (!address.includes(':')) return address;
  if (address.startsWith(MAPPED) && address.includes('.')) return address.slice(MAPPED.length);
  const [head = '', tail] = address.split('::');
  const groups = head === '' ? [] : head.split(':');
  if (tail !== undefined) {
    const last = tail.split(':');
    while (groups.length + last.length < GROUPS) groups.push('0');
    groups.push(...last);
  }
  return `${groups.slice(0, NETWORK_GROUPS).join(':')}::/64`;
}
