/** What other domains use of this one. */
export { type Area, OVERVIEW, type Place, SECTIONS } from './places'
