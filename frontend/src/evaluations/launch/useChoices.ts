/** What a form of an evaluation offers: datasets with their columns, judges, files that score. */
import { computed } from 'vue'
import { useI18n } from 'vue-i18n'

import { api, unwrap } from '@/api/client'
import { readAllPages } from '@/api/useCursorList'
import { useResource } from '@/api/useResource'
import { useFormat } from '@/format/useFormat'

const PAGE_SIZE = 200

export function useChoices() {
  const { t } = useI18n()
  const format = useFormat()
  const datasets = useResource((signal) =>
    readAllPages((cursor) =>
      unwrap(api.GET('/api/v1/datasets', { params: { query: { cursor, limit: PAGE_SIZE } }, signal })),
    ),
  )
  const judges = useResource((signal) => unwrap(api.GET('/api/v1/generations/endpoints', { signal })))
  const files = useResource((signal) => unwrap(api.GET('/api/v1/rewards/files', { signal })))

  const datasetOptions = computed(() =>
    (datasets.data.value ?? [])
      .filter((one) => one.head !== null)
      .map((one) => ({
        value: one.id,
        label: `${one.name} · ${t('jobs.launch.rows', { count: format.integer(one.row_count) }, one.row_count)}`,
      })),
  )
  const judgeOptions = computed(() =>
    (judges.data.value?.items ?? []).map((one) => ({
      value: one.name,
      label: one.name === one.model ? one.name : `${one.name} · ${one.model}`,
    })),
  )
  const fileOptions = computed(() => (files.data.value?.items ?? []).map((one) => ({ value: one.id, label: one.name })))
  const error = computed(() => datasets.error.value ?? judges.error.value ?? files.error.value)

  function columnOptions(dataset: string | null): { value: string; label: string }[] {
    const found = datasets.data.value?.find((one) => one.id === dataset)
    return (found?.columns ?? []).map((column) => ({ value: column.name, label: column.name }))
  }

  function retry(): void {
    for (const one of [datasets, judges, files]) if (one.error.value !== null) void one.refresh()
  }

  return { datasetOptions, judgeOptions, fileOptions, columnOptions, isLoading: datasets.isLoading, error, retry }
}

export type Choices = ReturnType<typeof useChoices>
