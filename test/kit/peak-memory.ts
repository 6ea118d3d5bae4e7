// Preloaded into a program: writes the peak memory of the process, in KiB, to the file TEST_PEAK_FILE.
import { writeFileSync } from 'node:fs';

const { TEST_PEAK_FILE = '' } = process.env;
process.on('exit', () => writeFileSync(TEST_PEAK_FILE, `${process.resourceUsage().maxRSS}`));
