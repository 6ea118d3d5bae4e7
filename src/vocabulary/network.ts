// Who is at the other end of a socket, for limits: an IPv4 address, or the /64 that one IPv6 subscriber is given whole.

const MAPPED = '::ffff:';
const GROUPS = 8;
const NETWORK_GROUPS = 4;

/** `192.0.2.1` (also of `::ffff:192.0.2.1`) or `2001:db8:0:1::/64`; the text itself where it is no address. */
export function networkOf(address: string): string {
  if (!address.includes(':')) return address;
  if (address.startsWith(MAPPED) && address.includes('.')) return address.slice(MAPPED.length);
  return `${networkGroups(address).join(':')}::/64`;
}

function networkGroups(address: string): readonly string[] {
  const [head = '', tail] = address.split('::');
  const first = groupsOf(head);
  if (tail === undefined) return first.slice(0, NETWORK_GROUPS);
  const last = groupsOf(tail);
  const zeros = Array.from({ length: Math.max(0, GROUPS - first.length - last.length) }, () => '0');
  return [...first, ...zeros, ...last].slice(0, NETWORK_GROUPS);
}

function groupsOf(part: string): readonly string[] {
  return part === '' ? [] : part.split(':');
}
