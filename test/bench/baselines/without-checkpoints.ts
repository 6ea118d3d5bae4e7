// Loaded before the service (`node --import`), in whose process it leaves out one thing: the publisher is never started.
const { href } = new URL('../../../dist/src/publisher/publishing.js', import.meta.url);
const { PublishLoop } = (await import(href)) as typeof import('../../../src/publisher/publish-loop.ts');
PublishLoop.prototype.start = () => {};
