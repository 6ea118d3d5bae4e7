// The limits that the descriptions state in tests.
export const LIMITS = {
  MAX_BODY_BYTES: 65_536,
  MEMBERS_MAX: 256,
  IDEAS_MAX: 256,
  SIGNATURE_MAX_AGE_SECONDS: 300,
  SIGNATURE_MAX_SKEW_SECONDS: 60,
};
