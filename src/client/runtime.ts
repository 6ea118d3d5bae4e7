// Which JavaScript runtime the client runs in.

/** Deno, Bun and Workers imitate Node, and say who they are in the user agent. */
export function isNode(): boolean {
  const { process, navigator } = globalThis;
  return process?.versions?.node !== undefined && (navigator?.userAgent ?? 'Node.js').startsWith('Node.js');
}
