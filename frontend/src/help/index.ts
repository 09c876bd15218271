/** What other domains use of this one. */
export { DOCUMENTS } from './documents'
