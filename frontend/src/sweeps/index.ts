/** What other domains use of this one. */
export type { SweepCreate, SweepPreview, Variation } from './types'
