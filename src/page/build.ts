// Builds the page's files into dist/page: two bundles, style and icon, each with a hash in its name, plain, as gzip and as Brotli.
// `npm run build` runs this script.
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, extname, join } from 'node:path';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { rolldown } from 'rolldown';
import { ASSETS_FOLDER } from './assets.ts';

const SOURCES = join(dirname(ASSETS_FOLDER), '../src/page/browser');
const PLATFORM = join(SOURCES, 'platform.ts');

export async function buildPage(folder: string): Promise<void> {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  for (const entry of ['page', 'audit-worker']) {
    // Replaces Node's SHA-256, and the WebAssembly that the page's policy forbids.
    const alias = { 'node:crypto': PLATFORM, 'hash-wasm': PLATFORM };
    const bundle = await rolldown({ input: join(SOURCES, `${entry}.ts`), platform: 'browser', resolve: { alias } });
    const { output } = await bundle.generate({
      format: 'esm',
      minify: true,
      // Chunks import each other, and the entry, by these names.
      entryFileNames: '[name]-[hash].js',
      chunkFileNames: '[name]-[hash].js',
    });
    for (const part of output) if (part.type === 'chunk') write(folder, part.fileName, part.code);
  }
  for (const name of ['style.css', 'icon.svg']) {
    const text = readFileSync(join(SOURCES, name), 'utf8');
    write(folder, hashedName(name, text), text);
  }
}

const HASH_CHARS = 8;

function hashedName(name: string, text: string): string {
  const extension = extname(name);
  const hash = createHash('sha256').update(text).digest('base64url').slice(0, HASH_CHARS);
  return `${name.slice(0, -extension.length)}-${hash}${extension}`;
}

function write(folder: string, name: string, text: string): void {
  writeFileSync(join(folder, name), text);
  writeFileSync(join(folder, `${name}.gz`), gzipSync(text, { level: 9 }));
  writeFileSync(join(folder, `${name}.br`), brotliCompressSync(text));
}

if (process.argv[1] === import.meta.filename) await buildPage(ASSETS_FOLDER);
