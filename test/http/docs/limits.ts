// The limits that descriptions are made with in tests.
export const LIMITS = {
  bodyBytesMax: 65_536,
  membersMax: 256,
  ideasMax: 256,
  signatureMaxAgeSeconds: 300,
  signatureMaxSkewSeconds: 60,
  events: { min: 1, max: 10_000, fallback: 1_000 },
};
