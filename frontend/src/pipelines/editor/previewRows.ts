/** Which rows a preview shows: those that change come first where they can be found. */
export const PICKS = ['changed', 'first', 'random'] as const
export type Pick = (typeof PICKS)[number]
