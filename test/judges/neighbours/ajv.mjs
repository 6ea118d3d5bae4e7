import assert from 'node:assert/strict';
import Ajv from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';

const { BASE_URL, DID } = process.env;
const read = async (path) => (await fetch(BASE_URL + path)).text();
const ajv = new Ajv.default();
addFormats.default(ajv);
const validate = ajv.compile(JSON.parse(await read('/schemas/events.json')));
const lines = [await read('/chambers/1/events'), await read(`/agents/${DID}/events`)].join('').trimEnd().split('\n');
for (const line of lines) assert.ok(validate(JSON.parse(line)), `${line} ${JSON.stringify(validate.errors)}`);
assert.ok(!validate({ ...JSON.parse(lines[0]), eventId: 'one' }));
console.log(`${lines.length} lines of a chamber and an account match /schemas/events.json`);
