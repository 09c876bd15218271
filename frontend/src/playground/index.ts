/** What other domains use of this one. */
export { handedOf, hindering, openPlayground, readPrompt } from './handing'
