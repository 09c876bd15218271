/** The y axis of a chart as the reader has set it: its ends as typed, and those that hold. */
import { computed, type Ref, ref, watch } from 'vue'

import type { YScale } from './yScale'

type Ends = readonly [number | null, number | null]

/** `usual` are the ends that the reader has not set. */
export function useYScale(scale: Ref<YScale>, usual: () => Ends) {
  const isLog = computed(() => scale.value.isLog)
  // Of its own, because the page may tell the scale only after the next key is pressed.
  const typed = ref({ low: scale.value.low, high: scale.value.high })
  const own = computed(() => [readEnd(typed.value.low), readEnd(typed.value.high)] as const)
  const yRange = computed<[number | null, number | null]>(() => [
    own.value[0] ?? readEnd(String(usual()[0])),
    own.value[1] ?? readEnd(String(usual()[1])),
  ])
  const hasRange = computed(() => own.value.some((end) => end !== null))

  /** Empty text, and what a log scale cannot show, leave an end to the values. */
  function readEnd(text: string): number | null {
    const value = text.trim() === '' ? NaN : Number(text)
    return Number.isFinite(value) && !(isLog.value && value <= 0) ? value : null
  }

  function type(end: 'low' | 'high', text: string): void {
    typed.value = { ...typed.value, [end]: text }
    scale.value = { ...scale.value, ...typed.value }
  }

  function toggleLog(): void {
    scale.value = { ...scale.value, isLog: !isLog.value }
  }

  watch(scale, ({ low, high }) => {
    if (low.trim() !== typed.value.low.trim() || high.trim() !== typed.value.high.trim()) typed.value = { low, high }
  })

  return { isLog, typed, yRange, hasRange, type, toggleLog }
}
