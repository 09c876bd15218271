/** How the charts of jobs are drawn: in the address whenever it was chosen, so that a link shows the same, and kept for the next visit. */
import { computed, onMounted, type WritableComputedRef } from 'vue'
import { useRoute, useRouter } from 'vue-router'

import type { XAxis } from '@/charts/lines'
import { readText, writeChoice } from '@/composables/storedChoice'

const KEY = 'trellis.jobs.smoothing'
const AXIS_KEY = 'trellis.jobs.axis'
/** A chart shows what was measured unless somebody asks for less. */
const USUAL = 0
const LEARNING_RATE = /(?:^|[/_])(?:lr|learning_rate)$/

/** A weight from 0 to 0.99; anything else is as if nothing had been chosen. */
export function parseSmoothing(stored: string | null): number {
  const weight = stored === null || stored === '' ? NaN : Number(stored)
  return weight >= 0 && weight <= 0.99 ? weight : USUAL
}

export function parseAxis(stored: string | null): XAxis {
  return stored === 'time' ? 'time' : 'step'
}

/** What is set, and not measured: smoothing would invent values that never were. */
export function isLearningRate(key: string): boolean {
  return LEARNING_RATE.test(key)
}

/** Metrics that a pattern finds: a regular expression where it is one, else a part of the key. */
export function matchKeys(keys: readonly string[], pattern: string): string[] {
  const wanted = pattern.trim()
  if (wanted === '') return []
  try {
    const expression = new RegExp(wanted, 'i')
    return keys.filter((key) => expression.test(key))
  } catch (cause) {
    if (!(cause instanceof SyntaxError)) throw cause
    return keys.filter((key) => key.toLowerCase().includes(wanted.toLowerCase()))
  }
}

function inAddress<T extends string | number>(name: string, key: string, parse: (text: string | null) => T): WritableComputedRef<T> {
  const route = useRoute()
  const router = useRouter()
  return computed({
    get: () => parse(typeof route.query[name] === 'string' ? route.query[name] : readText(key)),
    set: (value) => {
      writeChoice(key, String(value))
      void router.replace({ query: { ...route.query, [name]: String(value) } })
    },
  })
}

export function useSmoothing() {
  return inAddress('smoothing', KEY, parseSmoothing)
}

export function useAxis() {
  return inAddress<XAxis>('axis', AXIS_KEY, parseAxis)
}

/** Writes what was chosen on an earlier visit into the address, so that a link to the page shows it, too. */
export function useChosenInAddress(): void {
  const route = useRoute()
  const router = useRouter()
  onMounted(() => {
    const stored = { smoothing: readText(KEY), axis: readText(AXIS_KEY) }
    const missing = Object.entries(stored).filter(([name, value]) => value !== null && route.query[name] === undefined)
    if (missing.length > 0) void router.replace({ query: { ...route.query, ...Object.fromEntries(missing) } })
  })
}
