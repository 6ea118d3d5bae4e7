// Reads private keys of wallets, only from files: every program on the machine can see a command's arguments.
import { readFile } from 'node:fs/promises';
import type { WalletSigner } from '../client/wallet.ts';
import type { Hex } from '../vocabulary/values.ts';
import { CommandError } from './output.ts';
import { isRegularFile } from './write-whole.ts';

export async function walletOf(path: string, option = '--wallet-key-file'): Promise<WalletSigner> {
  // Loaded on demand, because loading the module would slow down every other command.
  const { privateKeyToAccount } = await import('viem/accounts');
  const key = await readKeyFile(option, path);
  try {
    return privateKeyToAccount(key as Hex);
  } catch {
    throw new CommandError(
      'usage',
      `${option}: ${path} does not contain a secp256k1 private key: 0x and 64 hex digits`,
    );
  }
}

export async function readKeyFile(option: string, path: string): Promise<string> {
  if (/^(0x)?[0-9a-f]{64}$/i.test(path)) {
    throw new CommandError('usage', `${option} takes the path of a file, not the key`);
  }
  if (!(await isRegularFile(path))) throw new CommandError('usage', `${option}: ${path} not found`);
  return (await readFile(path, 'utf8')).trim();
}
