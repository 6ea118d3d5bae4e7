// Loaded before a program (see clockOf): its clock is ahead by as many milliseconds as a file says.
import { readFileSync } from 'node:fs';
import { fetchWithoutDate } from './fetch-without-date.ts';

const { TEST_CLOCK_FILE = '' } = process.env;
const { now } = Date;
Date.now = () => now() + Number(readFileSync(TEST_CLOCK_FILE, 'utf8'));
globalThis.fetch = fetchWithoutDate;
