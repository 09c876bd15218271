/** What other domains use of this one. */
export { dryRunLink, readColumns } from './dryrun/address'
export { isTerm, readTerms } from './terms/terms'
export { default as TermsEditor } from './terms/TermsEditor.vue'
export type { RewardTerm } from './types'
export { useRewardKinds } from './useRewardKinds'
