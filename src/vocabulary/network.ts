// The caller's network, by which limits count: an IPv4 address, or the /64 that one IPv6 subscriber receives whole.

const MAPPED = '::ffff:';
const GROUPS = 8;
const NETWORK_GROUPS = 4;

/** `192.0.2.1` (also of `::ffff:192.0.2.1`) or `2001:db8:0:1::/64`; the text itself where it is no address. */
export function networkOf(address: string): string {
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
