// The bundle for the browser: the core, and the reader of transactions that the core loads dynamically.

export { readTransaction } from '../../src/audit/chain/contracts.ts';
export * from '../../src/audit/core.ts';
