/** What other domains use of this one. */
export { default as HealthMark } from './HealthMark.vue'
