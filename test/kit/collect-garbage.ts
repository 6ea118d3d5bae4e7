// Loaded by --import before a program: SIGUSR2 makes the program collect all garbage, so that its live memory can be measured.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
const collect: () => void = runInNewContext('gc');
process.on('SIGUSR2', collect);
