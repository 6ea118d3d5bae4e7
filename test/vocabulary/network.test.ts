import { describe, expect, it } from 'vitest';
import { networkOf } from '../../src/vocabulary/network.ts';

describe('a socket address', () => {
  it.each([
    ['192.0.2.1', '192.0.2.1'],
    ['::ffff:192.0.2.1', '192.0.2.1'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:db8:1:2::6', '2001:db8:1:2::/64'],
    ['2001:db8::6', '2001:db8:0:0::/64'],
    ['::1', '0:0:0:0::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
    ['1:2::7:8', '1:2:0:0::/64'],
    ['::4:5:6:7:8', '0:0:0:4::/64'],
    ['1::3:4:5:6:7:8', '1:0:3:4::/64'],
    ['1::', '1:0:0:0::/64'],
    ['::ffff:c000:201', '0:0:0:0::/64'],
    ['64:ff9b::192.0.2.1', '64:ff9b:0:0::/64'],
    ['host.example', 'host.example'],
    ['', ''],
  ])('%s counts as %s', (address, network) => {
    expect(networkOf(address)).toBe(network);
  });
});
