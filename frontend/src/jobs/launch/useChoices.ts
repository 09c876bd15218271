/** Models and datasets that a job can be given. */
import { computed } from 'vue'
import { useI18n } from 'vue-i18n'

import { api, unwrap } from '@/api/client'
import { useResource } from '@/api/useResource'
import { useFormat } from '@/format/useFormat'
import { useTextOr } from '@/i18n/useTextOr'

import type { Recipe } from '../types'

/** More than a person scrolls through; the list narrows as one types. */
const LIMIT = 200

export interface Choice {
  value: string
  label: string
  /** Said in the list beside the name. */
  note: string
  /** Cannot be chosen at all. */
  disabled: boolean
  /** Can be used as it is; a dataset that does not fit may still be converted. */
  fits: boolean
}

export function useChoices(recipe: () => Recipe | null) {
  const { t } = useI18n()
  const textOr = useTextOr()
  const format = useFormat()
  const models = useResource((signal) =>
    unwrap(api.GET('/api/v1/models', { params: { query: { limit: LIMIT } }, signal })),
  )
  const datasets = useResource((signal) =>
    unwrap(api.GET('/api/v1/datasets', { params: { query: { limit: LIMIT } }, signal })),
  )

  const modelChoices = computed<Choice[]>(() =>
    (models.data.value?.items ?? []).map((model) => ({
      value: model.id,
      label: model.name,
      note: model.state === 'ready' ? parameterText(model.parameter_count) : t(`jobs.launch.modelState.${model.state}`),
      disabled: model.state !== 'ready',
      fits: model.state === 'ready',
    })),
  )

  const datasetChoices = computed<Choice[]>(() => {
    const accepted: readonly string[] = recipe()?.data_formats ?? []
    return (datasets.data.value?.items ?? [])
      .map((dataset) => ({
        value: dataset.id,
        label: dataset.name,
        note: [
          ...(dataset.format === null ? [] : [formatName(dataset.format)]),
          t('jobs.launch.rows', { count: format.integer(dataset.row_count) }, dataset.row_count),
        ].join(' · '),
        // Without a version there are no rows (yet).
        disabled: dataset.head === null,
        fits: dataset.format !== null && accepted.includes(dataset.format),
      }))
      .sort((a, b) => Number(b.fits) - Number(a.fits))
  })

  function formatName(name: string): string {
    return textOr(`jobs.launch.format.${name}`, name)
  }

  function parameterText(count: number | null): string {
    if (count === null) return ''
    const [factor, suffix] = count >= 1e9 ? [1e9, 'B'] : count >= 1e6 ? [1e6, 'M'] : [1e3, 'K']
    return `${format.number(count / factor, 3)}${suffix}`
  }

  return { models, datasets, modelChoices, datasetChoices, formatName }
}
