export const WITHHOLD_REASONS = ['personal-data', 'secret', 'abuse', 'law'] as const;
export type WithholdReason = (typeof WITHHOLD_REASONS)[number];
