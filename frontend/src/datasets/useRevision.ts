/** Which version and split of a dataset the page shows: both are in the address. */
import type { MaybeRefOrGetter } from 'vue'
import { computed, toValue } from 'vue'
import { useRoute, useRouter } from 'vue-router'

import { api, unwrap } from '@/api/client'
import { useResource } from '@/api/useResource'

import { chooseSplit, resolveRevision } from './revision'
import type { Column, Dataset, VersionDetail } from './types'

export interface Shown {
  /** As the address has it: branch, tag or id; null for the tip of main. */
  revision: string | null
  /** Its id. */
  version: string
  splits: Readonly<Record<string, number>>
  split: string
  rowCount: number
  format: Dataset['format']
  format_columns: Dataset['format_columns']
  columns: readonly Column[]
}

type Holding = Pick<VersionDetail, 'id' | 'splits' | 'format' | 'format_columns' | 'columns'>

export function useRevision(dataset: MaybeRefOrGetter<Dataset>) {
  const route = useRoute()
  const router = useRouter()
  const text = (name: string) =>
    typeof route.query[name] === 'string' && route.query[name] !== '' ? route.query[name] : null
  const revision = computed(() => text('version'))
  const head = computed(() => toValue(dataset).head)
  const id = computed(() => toValue(dataset).id)

  const refs = useResource(
    (signal) =>
      unwrap(api.GET('/api/v1/datasets/{dataset_id}/refs', { params: { path: { dataset_id: id.value } }, signal })),
    { watch: [id, head] },
  )
  const version = computed(() =>
    revision.value === null ? head.value : resolveRevision(revision.value, refs.data.value),
  )
  const detail = useResource<VersionDetail | null>(
    async (signal) => {
      if (version.value === null || version.value === head.value) return null
      return unwrap(
        api.GET('/api/v1/datasets/{dataset_id}/versions/{version_id}', {
          params: { path: { dataset_id: id.value, version_id: version.value } },
          signal,
        }),
      )
    },
    { watch: [id, version] },
  )

  /** What the dataset says of itself is that of its head; of another version its detail says it. */
  const holding = computed<Holding | null>(() => {
    const it = toValue(dataset)
    if (version.value === null) return null
    if (version.value === it.head)
      return {
        id: version.value,
        splits: it.splits,
        format: it.format ?? 'unknown',
        format_columns: it.format_columns,
        columns: it.columns,
      }
    return detail.data.value
  })
  const shown = computed<Shown | null>(() => {
    if (holding.value === null) return null
    const { splits, format, format_columns, columns } = holding.value
    const split = chooseSplit(splits, text('split'))
    if (split === null) return null
    return {
      revision: revision.value,
      version: holding.value.id,
      splits,
      split,
      rowCount: splits[split] ?? 0,
      format,
      format_columns,
      columns,
    }
  })

  function show(next: { version?: string | null; split?: string | null }): void {
    const query = { ...route.query }
    if (next.version !== undefined) query.version = next.version
    if (next.split !== undefined) query.split = next.split
    const kept = Object.entries(query).filter(([, value]) => value !== null && value !== undefined)
    void router.replace({ query: Object.fromEntries(kept) })
  }

  return { revision, refs, detail, shown, show }
}
