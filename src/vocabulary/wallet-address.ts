// EVM addresses as people write them (EIP-55).
import { checksumAddress, type Hex } from 'viem';

const ADDRESS = /^0x[0-9a-fA-F]{40}$/;

/** Whether text is an EVM address: of one case, or mixed with a right EIP-55 checksum. */
export function isWalletAddress(text: string): boolean {
  if (!ADDRESS.test(text)) return false;
  const digits = text.slice(2);
  const isOneCase = digits === digits.toLowerCase() || digits === digits.toUpperCase();
  return isOneCase || checksumAddress(text as Hex) === text;
}
