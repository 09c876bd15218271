/** Finished evaluations on one of the same benchmarks, to compare with. */
import { computed } from 'vue'

import type { Evaluation } from '../types'
import { useFinishedEvaluations } from './useFinishedEvaluations'

export function useOthers(
  evaluation: () => Evaluation,
  /** Null for any of its benchmarks. */ label: () => string | null,
) {
  const { resource, say } = useFinishedEvaluations()

  const options = computed(() => {
    const own = evaluation()
    const wanted = new Set(
      own.benchmarks.map((order) => order.label).filter((one) => one !== null && (label() === null || one === label())),
    )
    const others = (resource.data.value ?? []).filter(
      (one) => one.id !== own.id && one.benchmarks.some((order) => wanted.has(order.label)),
    )
    return others.map((one) => ({ value: one.id, label: say(one) }))
  })
  return { resource, options }
}
