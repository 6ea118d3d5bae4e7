// Tests which requests get a page: only those from browsers.
import { describe, expect, it } from 'vitest';
import { wantsHtml } from '../../src/html/negotiate.ts';

const CHROME =
  'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8,application/signed-exchange;v=b3;q=0.7';

describe('a page', () => {
  it.each([
    ['Chrome', CHROME],
    ['Firefox', 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8'],
    ['Firefox of 2024', 'text/html,application/xhtml+xml,application/xml;q=0.9,image/png,image/svg+xml,*/*;q=0.8'],
    ['Safari', 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8'],
    ['lynx', 'text/html, text/plain, application/xhtml+xml, */*;q=0.01'],
    ['HTML alone', 'text/html'],
    ['any text', 'text/*'],
    ['HTML in capitals', 'Text/HTML'],
    ['HTML in UTF-8', 'text/html;charset=UTF-8'],
    ['HTML in quoted UTF-8', 'text/html; charset="utf-8"'],
    ['HTML before JSON', 'text/html, application/json;q=0.999'],
    ['HTML before all application types', 'text/html;q=0.9, application/*;q=0.8'],
    ['HTML and no JSON', 'text/html;q=0.1, application/json;q=0'],
    ['empty elements', ', text/html,, ,'],
    ['white space', ' text/html ; q=0.5 , application/json ; q=0.4 '],
  ])('a request gets a page: %s', (_client, accept) => expect(wantsHtml(accept)).toBe(true));
});

describe('JSON', () => {
  it.each([
    ['no header', undefined],
    ['an empty header', ''],
    ['curl, Node’s fetch, python-requests', '*/*'],
    ['axios', 'application/json, text/plain, */*'],
    ['Java', 'text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2'],
    ['Java, well formed', 'text/html, image/gif, image/jpeg, */*; q=0.2'],
    ['jQuery', 'application/json, text/javascript, */*; q=0.01'],
    ['jQuery that accepts HTML', 'text/html, */*; q=0.01'],
    ['Internet Explorer, which gives all the same quality', 'text/html, application/xhtml+xml, image/jxr, */*'],
    ['JSON', 'application/json'],
    ['another JSON type', 'application/problem+json'],
    ['an event stream', 'text/event-stream'],
    ['HTML and JSON with equal quality', 'text/html, application/json'],
    ['JSON before HTML', 'application/json, text/html;q=0.9'],
    ['JSON by wildcard', 'text/html;q=0.8, application/*;q=0.9'],
    ['JSON by wildcard, with equal quality', 'text/html, application/*'],
    ['HTML with quality 0', 'text/html;q=0'],
    ['HTML with an unknown parameter', 'text/html;level=1'],
    ['HTML in another charset', 'text/html;charset=utf-16'],
    ['XHTML without HTML', 'application/xhtml+xml'],
    ['a browser that prefers JSON', 'text/html;q=0.5,application/xhtml+xml,application/json,*/*;q=0.8'],
    ['a quality over 1', 'text/html;q=2'],
    ['a quality of four digits', 'text/html;q=0.1234'],
    ['a negative quality', 'text/html;q=-1'],
    ['a quality that is not a number', 'text/html;q=high'],
    ['an empty quality', 'text/html;q='],
    ['a type alone', 'text'],
    ['a star alone', 'text/html, *'],
    ['a wildcard type', 'text/html, */html'],
    ['two slashes', 'text/html, a/b/c'],
    ['a semicolon alone', 'text/html;'],
    ['a parameter without a value', 'text/html;charset'],
    ['a space within a type', 'text /html'],
    ['markup', '<script>, text/html'],
    ['a control character', 'text/html, a\u0000/b'],
  ])('a request gets JSON: %s', (_client, accept) => expect(wantsHtml(accept)).toBe(false));
});
