// The memory of this program after collecting all garbage, in bytes.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
const collect: () => void = runInNewContext('gc');

/** The array buffers. */
export async function buffersHeld(): Promise<number> {
  return (await memoryHeld()).arrayBuffers;
}

/** All objects. */
export async function heapHeld(): Promise<number> {
  return (await memoryHeld()).heapUsed;
}

async function memoryHeld(): Promise<NodeJS.MemoryUsage> {
  for (let round = 0; round < 3; round++) {
    collect();
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  return process.memoryUsage();
}
