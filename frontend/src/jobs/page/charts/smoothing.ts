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

/** Longer than any metric's name. */
export const MAX_PATTERN = 100

/** Whether the parts between the stars stand in the key one after another: takes time in the key's length only. */
function holdsInOrder(key: string, parts: readonly string[], isEndAnchored: boolean): boolean {
  let from = 0
  for (const [index, part] of parts.entries()) {
    if (index === parts.length - 1 && isEndAnchored) return key.length - part.length >= from && key.endsWith(part)
    const at = key.indexOf(part, from)
    if (at < 0) return false
    from = at + part.length
  }
  return true
}

/**
 * Metrics that a pattern finds: a part of the key, in which `*` stands for any text, `^` at its beginning for that of
 * the key and `$` at its end for the key's. No regular expression: one from an address could keep the page busy for ever.
 */
export function matchKeys(keys: readonly string[], pattern: string): string[] {
  const wanted = pattern.trim().toLowerCase()
  if (wanted === '' || wanted.length > MAX_PATTERN) return []
  const isStart = wanted.startsWith('^')
  const isEnd = wanted.endsWith('$')
  const parts = wanted.slice(isStart ? 1 : 0, isEnd ? -1 : undefined).split('*')
  return keys.filter((key) => {
    const lower = key.toLowerCase()
    const first = parts[0] ?? ''
    return (!isStart || lower.startsWith(first)) && holdsInOrder(lower, parts, isEnd)
  })
}

function inAddress<T extends string | number>(
  name: string,
  key: string,
  parse: (text: string | null) => T,
): WritableComputedRef<T> {
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
