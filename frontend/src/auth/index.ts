/** What other domains use of this one. */
export { useSessionStore } from './store'
