/** What other domains use of this one. */
export { readLoaded } from './endpointList'
export { handedOf, hindering, openPlayground, readPrompt } from './handing'
