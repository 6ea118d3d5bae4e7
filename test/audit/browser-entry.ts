// The entry point of the browser bundle: the core, and the transaction reader that the core loads dynamically.

export { readTransaction } from '../../src/audit/chain/contracts.ts';
export * from '../../src/audit/core.ts';
