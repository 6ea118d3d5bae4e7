import assert from 'node:assert/strict';
import { AbiCoder, Contract, JsonRpcProvider, keccak256, toUtf8Bytes, Wallet } from 'ethers';
import { register } from './signed.mjs';

const { BASE_URL } = process.env;
const json = async (path) => (await fetch(BASE_URL + path)).json();

// The service must report the root that is on the chain.
const { chain } = await json('/health');
const provider = new JsonRpcProvider(chain.rpcUrl);
const registry = new Contract(chain.registryAddress, ['function rootOf(uint256) view returns (bytes32)'], provider);
const { merkleRoot, ideas } = await json('/chambers/1');
assert.equal(await registry.rootOf(1), merkleRoot);
provider.destroy();

// Commitments and leaves must be computed as the guide describes.
const lines = (await (await fetch(`${BASE_URL}/chambers/1/events`)).text()).trimEnd().split('\n');
const events = lines.map((line) => JSON.parse(line));
const reveal = events.find(({ type }) => type === 'allocation.revealed');
const commit = events.find(({ type, did }) => type === 'allocation.committed' && did === reveal.did);
const { allocations, salt } = reveal.payload;
const types = ['uint256', 'string', 'tuple(string ideaId, uint256 bps)[]', 'bytes'];
const hash = keccak256(AbiCoder.defaultAbiCoder().encode(types, [1, reveal.did, allocations, salt]));
assert.equal(hash, commit.payload.commitment);
assert.equal(keccak256(keccak256(toUtf8Bytes(lines[0]))), events[1].prev);

// Proves a wallet.
const wallet = Wallet.createRandom();
const proven = await register({ address: wallet.address, sign: (text) => wallet.signMessage(text) });
assert.equal(proven.walletProven, true);
console.log(`the root on the chain, a commitment, a leaf, ${ideas.length} ideas, and the proof of a wallet`);
