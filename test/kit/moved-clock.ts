// Preloaded into a program (see clockOf). One file holds the offset of its clock in milliseconds, another that of its monotonic
// clock.
import { readFileSync } from 'node:fs';
import { fetchWithoutDate } from './fetch-without-date.ts';

const { TEST_CLOCK_FILE = '', TEST_STEADY_FILE } = process.env;
const { now } = Date;
Date.now = () => now() + Number(readFileSync(TEST_CLOCK_FILE, 'utf8'));
globalThis.fetch = fetchWithoutDate;
if (TEST_STEADY_FILE !== undefined) {
  const steady = performance.now.bind(performance);
  performance.now = () => steady() + Number(readFileSync(TEST_STEADY_FILE, 'utf8'));
}
