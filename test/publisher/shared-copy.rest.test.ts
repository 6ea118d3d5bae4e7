// Nodes in containers may share the folder of their keys and have the same process id in each container.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { ROOT } from '../kit/programs.ts';
import { temporaryFolder } from '../kit/temporary.ts';

const WRITES = 300;
const UNSHARE = ['--pid', '--fork', '--mount-proc', '--kill-child'];
const hasNamespaces = spawnSync('unshare', [...UNSHARE, 'true']).status === 0;

const writer = (name: string, path: string) => `
  import { writeCheckpointCopy } from ${JSON.stringify(join(ROOT, 'src/publisher/checkpoint-copy.ts'))};
  let failed = 0;
  for (let i = 0; i < ${WRITES}; i++) {
    await writeCheckpointCopy(${JSON.stringify(path)}, ${JSON.stringify(name)}.repeat(200) + '\\n').catch(() => failed++);
  }
  console.log(process.pid, failed);`;

it.runIf(hasNamespaces)(
  'a checkpoint copy that nodes in containers share stays intact, and no write fails',
  { timeout: 60_000 },
  async () => {
    const folder = temporaryFolder();
    const path = join(folder, 'keys.json.checkpoint');
    writeFileSync(path, `${'a'.repeat(200)}\n`);
    const wholes = new Set(['a', 'b'].map((name) => `${name.repeat(200)}\n`));
    let running = 2;
    const torn: string[] = [];
    const writers = ['a', 'b'].map(async (name) => {
      const args = [...UNSHARE, process.execPath, '--input-type=module', '--eval', writer(name, path)];
      const child = spawn('unshare', args, { cwd: ROOT, stdio: ['ignore', 'pipe', 'inherit'] });
      let said = '';
      child.stdout.on('data', (chunk) => {
        said += chunk;
      });
      await once(child, 'close');
      running--;
      return said.trim();
    });
    while (running > 0) {
      const read = readFileSync(path, 'utf8');
      if (!wholes.has(read)) torn.push(read);
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(await Promise.all(writers)).toEqual(['1 0', '1 0']);
    expect(torn).toEqual([]);
    expect(readdirSync(folder)).toEqual(['keys.json.checkpoint']);
  },
);
