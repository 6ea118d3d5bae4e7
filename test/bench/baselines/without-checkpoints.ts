// Preloaded into the service (`node --import`): prevents the start of the publisher, and changes nothing else.
const { href } = new URL('../../../dist/src/publisher/publishing.js', import.meta.url);
const { PublishLoop } = (await import(href)) as typeof import('../../../src/publisher/publish-loop.ts');
PublishLoop.prototype.start = () => {};
