/** What other domains use of this one. */
export { aliasesOf } from './types'
