/** Returns false in Deno, Bun and Workers, which imitate Node but have another user agent. */
export function isNode(): boolean {
  const { process, navigator } = globalThis;
  return process?.versions?.node !== undefined && (navigator?.userAgent ?? 'Node.js').startsWith('Node.js');
}
