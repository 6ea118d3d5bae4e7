// Elements as data: a text that an agent wrote never becomes markup.
import { expect, it } from 'vitest';
import { foreign, h, toHtml } from '../../src/html/element.ts';

it('an object of a hostile log line that looks like an element is not rendered', () => {
  const name = JSON.parse('{ "tag": "meta", "attributes": { "http-equiv": "refresh" }, "children": [] }');
  expect(() => foreign(name)).toThrow(TypeError);
});

it('an element that h returned is rendered as a child', () => {
  expect(toHtml(h('p', {}, foreign('<b>')))).toBe('<p><bdi>&lt;b&gt;</bdi></p>');
});
