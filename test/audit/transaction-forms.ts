// Forms of a logged transaction that the relayer never writes, each with the hash of its bytes.
import { concat, fromRlp, type Hex, keccak256, numberToHex, parseTransaction, slice, toRlp, trim } from 'viem';
import type { RelayTransaction } from '../../src/vocabulary/service-payloads.ts';
import { RELAYER } from './sample.ts';

type Fields = readonly (Hex | readonly [])[];

const TYPE = '0x02';
/** The order of secp256k1. */
export const CURVE_ORDER =
  0xff_ff_ff_ff_ff_ff_ff_ff_ff_ff_ff_ff_ff_ff_ff_fe_ba_ae_dc_e6_af_48_a0_3b_bf_d2_5e_8c_d0_36_41_41n;
/** Positions in the field list of an EIP-1559 transaction. */
const [NONCE, PRIORITY_FEE, Y_PARITY, R, S] = [1, 2, 9, 10, 11] as const;

export async function wrongForms(logged: RelayTransaction): Promise<readonly (readonly [string, RelayTransaction])[]> {
  const raw = logged.rawTransaction;
  const fields = fromRlp(slice(raw, 1)) as Fields;
  const { data, to, nonce, chainId } = parseTransaction(raw);
  const call = { data, to, nonce, chainId, gas: 500_000n, gasPrice: 100n };
  const withFields = (changes: Readonly<Record<number, Hex>>) =>
    concat([TYPE, toRlp(Object.assign([...fields], changes))]);
  const otherS = numberToHex(CURVE_ORDER - BigInt(fields[S] as Hex));
  const otherParity = fields[Y_PARITY] === '0x' ? '0x01' : '0x';
  const forms: readonly (readonly [string, Hex])[] = [
    ['without a type', await RELAYER.signTransaction({ type: 'legacy', ...call } as Legacy)],
    ['of type 1', await RELAYER.signTransaction({ type: 'eip2930', ...call } as Legacy)],
    ['with a trailing byte', `${raw}00`],
    ['whose nonce has a leading zero', withFields({ [NONCE]: concat(['0x00', fields[NONCE] as Hex]) })],
    ['with the higher s', withFields({ [S]: otherS, [Y_PARITY]: otherParity })],
    ['with an r of 0', withFields({ [R]: '0x' })],
    ['whose priority fee exceeds its maximum fee', await signedAgain(fields.with(PRIORITY_FEE, '0x65'))],
  ];
  return forms.map(([title, rawTransaction]) => [
    `a transaction ${title}`,
    { ...logged, rawTransaction, txHash: keccak256(rawTransaction) },
  ]);
}

type Legacy = Parameters<typeof RELAYER.signTransaction>[0];

async function signedAgain(fields: Fields): Promise<Hex> {
  const unsigned = fields.slice(0, Y_PARITY) as Hex[];
  const signature = await RELAYER.sign({ hash: keccak256(concat([TYPE, toRlp(unsigned)])) });
  const [r, s] = [slice(signature, 0, 32), slice(signature, 32, 64)];
  const parity = slice(signature, 64) === '0x1b' ? '0x' : '0x01';
  return concat([TYPE, toRlp([...unsigned, parity, trim(r), trim(s)])]);
}
