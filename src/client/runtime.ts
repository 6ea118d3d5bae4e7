/** Deno, Bun and Workers imitate Node but have another user agent. */
export function isNode(): boolean {
  const { process, navigator } = globalThis;
  return process?.versions?.node !== undefined && (navigator?.userAgent ?? 'Node.js').startsWith('Node.js');
}
