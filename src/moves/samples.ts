// Values for examples. Both agents use keys from RFC 8032, 7.1, so the signatures can be reproduced.
import { commitmentHash } from '../crypto/commitment.ts';
import type { Allocation, Hex } from '../vocabulary/values.ts';

/** The seed of the first agent (RFC 8032, 7.1, test 1). It is public: never use it for anything else. */
export const SAMPLE_SEED: Hex = '0x9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60';
export const SAMPLE_PUBKEY: Hex = '0xd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a';
export const ALICE = 'did:key:z6MktwupdmLXVVqTzCw4i46r4uGyosGXRnR3XjN4Zq7oMMsw';
export const BOB = 'did:key:z6MkiaMbhXHNA4eJVCCj8dbzKzTgYDKf6crKgHVHid1F1WCT';

export const CHAMBER_ID = 7;
export const WALLET = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed';
export const SERVICE = 'https://chambers.example.org';
export const ISSUED_AT = '2030-01-01T12:00:00.000Z';
export const WALLET_SIGNATURE: Hex = `0x${'3e'.repeat(64)}1b`;
export const TOKEN = '0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359';
export const TX_HASH: Hex = `0x${'5c'.repeat(32)}`;
export const RAW_TRANSACTION: Hex = `0x02f8${'a1'.repeat(40)}`;
export const SAMPLE_LOG_ID = '3f1c9d0ab47e4b6f9d2a8c5e6b7f0d14';
/** The key and its thumbprint from RFC 8037, appendix A. */
export const RECEIPT_KEY = {
  kty: 'OKP',
  crv: 'Ed25519',
  x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo',
  kid: 'kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k',
  alg: 'Ed25519',
  use: 'sig',
  purpose: 'receipts',
  nbf: 1_893_499_200,
} as const;
export const SERVICE_KEYS = { receipts: RECEIPT_KEY.kid, checkpoints: 'poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U' };
export const CHECKPOINT_KEY =
  'chambers.example.org/log/3f1c9d0ab47e4b6f9d2a8c5e6b7f0d14+f8bf288a+AddamAGCsQq31Uv+08lkBzoO4XLz2qYjJa8CGmj3B1Ea';
/** Signed with the key of SAMPLE_SEED; TLOG_PROOF contains it. */
export const CHECKPOINT = `chambers.example.org/log/3f1c9d0ab47e4b6f9d2a8c5e6b7f0d14
3
34lolseZUx8f0eVWzqJqaYmrBoU7y/3T5PUJemEfZY8=

— chambers.example.org/log/3f1c9d0ab47e4b6f9d2a8c5e6b7f0d14 +L8oin++oGHuyc4Xjup/g0bEDu+eHPTR6NjedBavdwvbrfQmnD4qeeYnDhixQDB0iR9YHesFAEknCBoBLPzE6nCTfwU=
`;
export const TLOG_PROOF = `c2sp.org/tlog-proof@v1
index 1
3P/nht7RbSg8ZjhGrQxP8mVY/M3jbKnTCy6hnq3p/A4=
rKoEZjqFR6L3DGDMGPk3h5axPE+aCPcNatrmYjZbMMY=

${CHECKPOINT}`;
export const PREV: Hex = '0x8a3f6c0d1b2e4f5a69788796a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2';
export const ROOT: Hex = '0x1d0c7a5e93b2486f80d7c6b5a49382716f5e4d3c2b1a09f8e7d6c5b4a3928170';
export const SIBLING: Hex = '0x64e1b7f09a8d3c2b5f4e6a7d8c9b0a1f2e3d4c5b6a798887969594a3b2c1d0ef';

export const PERSONALITY = { loves: ['public goods'], hates: ['spam'], expertise: ['markets'], style: 'dry' };
export const IDEA = { name: 'Rain insurance', ticker: 'RAIN', description: 'Pays out when it does not rain.' };
export const AMENDED_DESCRIPTION = 'Pays out when two stations measure no rain for 30 days.';
export const COMMENT = 'Who measures the rain?';
/** The line of a debate event after its comment was withheld, signed by RECEIPT_KEY. */
export const STUB =
  '{"chamberId":7,"did":"did:key:z6MktwupdmLXVVqTzCw4i46r4uGyosGXRnR3XjN4Zq7oMMsw","eventId":4,"payload":{"accountEventId":1,"comment":"[withheld]","ideaId":"idea-1","stance":"undecided","version":1},"prev":"0x9b9b9b9b9b9b9b9b9b9b9b9b9b9b9b9b9b9b9b9b9b9b9b9b9b9b9b9b9b9b9b9b","request":null,"ts":"2030-01-01T12:21:00.000Z","type":"chamber.debated","withheld":{"at":"2030-01-02T08:00:00.000Z","key":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo","keyid":"kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k","leaf":"0x27197dbec89e6cdcdb6af087e1014856df2c5d4c95f764e3123dd1209913b805","log":"3f1c9d0ab47e4b6f9d2a8c5e6b7f0d14","reason":"personal-data","signature":"U_7cMde5zUQymMxO0x5ZqXzP68yGpVWrmSCzTv5Gf1RZoVN9OoLwlTPLXSwKF1YP17l0kNLwXa8I33YqF4CuDA"}}';

export const DEADLINES = {
  lobbyDeadline: '2030-01-01T12:10:00.000Z',
  proposalDeadline: '2030-01-01T12:20:00.000Z',
  debateDeadline: '2030-01-01T12:30:00.000Z',
  allocateCommitDeadline: '2030-01-01T12:40:00.000Z',
  allocateRevealDeadline: '2030-01-01T12:50:00.000Z',
};

export const ALLOCATIONS: readonly Allocation[] = [{ ideaId: 'idea-1', bps: 6000 }];
export const SALT: Hex = `0x${'ab'.repeat(32)}`;
export const COMMITMENT = commitmentHash({
  chamberId: CHAMBER_ID,
  did: ALICE,
  allocations: ALLOCATIONS,
  salt: SALT,
});
