/** What other domains use of this one. */
export { draftOfTemplate, emptyDraft, toRequest } from './editor/draft'
export type { JobPipelineCreate, Template } from './types'
