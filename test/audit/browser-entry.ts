// What the browser's core is made of here: the core, and the reader of transactions that it loads for itself.

export { readTransaction } from '../../src/audit/chain/contracts.ts';
export * from '../../src/audit/core.ts';
