// The network that a request counts against: the socket's, or the one that a trusted proxy reports. For limits only, never for
// signatures.
import type { IncomingMessage } from 'node:http';
import { BlockList, isIP } from 'node:net';
import { networkOf } from './vocabulary/network.ts';

/** The client's network: `192.0.2.1`, or the /64 of an IPv6 address. `isProxied` if it may differ on the next request. */
export function clientNetwork(trustedProxies: BlockList, { socket, headers }: IncomingMessage) {
  const peer = socket.remoteAddress ?? '';
  const isProxied = isTrusted(trustedProxies, peer);
  const address = isProxied ? (clientAddress(trustedProxies, headers) ?? peer) : peer;
  return { network: networkOf(address), isProxied };
}

/** Throws a TypeError for anything but an address or `address/prefix`. */
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

function isTrusted(trusted: BlockList, address: string): boolean {
  const plain = address.startsWith('::ffff:') && address.includes('.') ? address.slice('::ffff:'.length) : address;
  return isIP(plain) !== 0 && trusted.check(plain, isIP(plain) === 6 ? 'ipv6' : 'ipv4');
}

/** The nearest address that is not a trusted proxy: the client may have forged everything before it. */
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

/** `192.0.2.1:80`, `[2001:db8::1]:80` and the same without a port. */
function withoutPort(text: string): string {
  const hop = text.trim();
  const [, bracketed] = /^\[([^\]]*)\](?::\d+)?$/.exec(hop) ?? [];
  return bracketed ?? hop.replace(/^(\d+\.\d+\.\d+\.\d+):\d+$/, '$1');
}
