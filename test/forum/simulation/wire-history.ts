// Converts requests of real clients to the checker's input.
import type { Wire } from '../../kit/wire.ts';
import type { AskedCommand } from './history.ts';

/** `did` is null for an unsigned request. */
export function askedBy({ path, body = '{}', headers }: Wire): AskedCommand {
  const { signature = null } = headers;
  const input = headers['signature-input'] ?? '';
  const did = /keyid="([^"]+)"/.exec(input)?.[1] ?? null;
  const times = [...input.matchAll(/;(created|expires)=(\d+)/g)].map(([, name, seconds]) => [name, Number(seconds)]);
  const of = { did, body: JSON.parse(body), signature, ...Object.fromEntries(times) };
  const [, first, chamberId, move] = path.split('/');
  if (chamberId !== undefined && move !== undefined) return { ...of, operation: move, chamberId: Number(chamberId) };
  return { ...of, operation: OPERATIONS[`${first}`] ?? `${first}`, chamberId: null };
}

const OPERATIONS: Readonly<Record<string, string>> = { chambers: 'createChamber', personality: 'changePersonality' };
