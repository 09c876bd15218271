/** What other domains use of this one. */
export { isUp, readEndpoints } from './endpointList'
export { handedOf, hindering, openPlayground, readPrompt } from './handing'
