// Loaded before a program: it leaves the most memory that the process held, in KiB, in the file TEST_PEAK_FILE.
import { writeFileSync } from 'node:fs';

const { TEST_PEAK_FILE = '' } = process.env;
process.on('exit', () => writeFileSync(TEST_PEAK_FILE, `${process.resourceUsage().maxRSS}`));
