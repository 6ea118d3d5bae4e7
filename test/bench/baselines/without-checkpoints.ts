// Preloaded into the service (`node --import`): keeps the publisher from starting, and changes nothing else.
const { href } = new URL('../../../dist/src/publisher/publishing.js', import.meta.url);
const { PublishLoop } = (await import(href)) as typeof import('../../../src/publisher/publish-loop.ts');
PublishLoop.prototype.start = () => {};
