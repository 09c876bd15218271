/** How much the charts of jobs are smoothed: kept while the reader looks at other tabs, jobs and days. */
import { ref, watch } from 'vue'

import { readText, writeChoice } from '@/composables/storedChoice'

const KEY = 'trellis.jobs.smoothing'
const USUAL = 0.6

/** A weight from 0 to 0.99; anything else is as if nothing had been chosen. */
export function parseSmoothing(stored: string | null): number {
  const weight = stored === null || stored === '' ? NaN : Number(stored)
  return weight >= 0 && weight <= 0.99 ? weight : USUAL
}

export function useSmoothing() {
  const smoothing = ref(parseSmoothing(readText(KEY)))
  watch(smoothing, (weight) => {
    writeChoice(KEY, String(weight))
  })
  return smoothing
}
