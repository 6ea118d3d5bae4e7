// Loaded before the service (`node --import`), in whose process it leaves out one thing: the publisher is never started.
const { href } = new URL('../../../dist/src/publisher/publishing.js', import.meta.url);
const { Publishing } = (await import(href)) as typeof import('../../../src/publisher/publishing.ts');
Publishing.prototype.start = () => {};
