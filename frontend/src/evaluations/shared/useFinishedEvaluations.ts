/** Evaluations that have results, newest first, as a field offers them. */
import { computed } from 'vue'
import { useI18n } from 'vue-i18n'

import { api, unwrap } from '@/api/client'
import { useResource } from '@/api/useResource'
import { useFormat } from '@/format/useFormat'

import type { Evaluation } from '../types'
import { useNames } from './names'

/** More than a person scrolls through; the list narrows as one types. */
const LIMIT = 200

export function useFinishedEvaluations() {
  const { t } = useI18n()
  const format = useFormat()
  const { labelName, targetName } = useNames()
  const resource = useResource(async (signal) => {
    const query = { state: ['succeeded' as const], limit: LIMIT }
    return (await unwrap(api.GET('/api/v1/evaluations', { params: { query }, signal }))).items
  })

  /** Everything that a person may look for: the name, what was measured, on what, and when. */
  function say(evaluation: Evaluation): string {
    const labels = evaluation.benchmarks.map((order) =>
      labelName(order.label ?? order.benchmark, order.benchmark, evaluation.datasets[order.label ?? order.benchmark]),
    )
    const target = targetName(evaluation.target)
    const named = evaluation.name.includes(target) ? [evaluation.name] : [evaluation.name, target]
    return [...named, labels.join(t('evaluations.compare.listComma')), format.dateTime(evaluation.created_at)].join(
      ' · ',
    )
  }

  const options = computed(() => (resource.data.value ?? []).map((one) => ({ value: one.id, label: say(one) })))
  return { resource, options, say }
}
