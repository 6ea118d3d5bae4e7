// Measures the live memory of this program, in bytes, after collecting all garbage.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
const collect: () => void = runInNewContext('gc');

/** Returns the size of the array buffers. */
export async function buffersHeld(): Promise<number> {
  return (await memoryHeld()).arrayBuffers;
}

/** Returns the size of all objects. */
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
