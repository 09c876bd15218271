/** What other domains use of this one. */
export { chartsOf, type FigureLine, gpuNumbers, lastOf, shareOf, spreadOverRange } from './figures'
export { placeColumn, stepClock } from './placement'
export { default as ProcessTable } from './ProcessTable.vue'
export type { NodeSamples, ProcessHistory } from './types'
