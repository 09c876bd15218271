/** The versions of a dataset that something can be started on, and the splits of the one that is chosen. */
import type { SelectGroupOption, SelectOption } from 'naive-ui'
import { computed } from 'vue'
import { useI18n } from 'vue-i18n'

import { api, unwrap } from '@/api/client'
import { useResource } from '@/api/useResource'
import { findVersion, MAIN, type Refs, type Version } from '@/datasets'
import { useFormat } from '@/format/useFormat'

/** More than a person scrolls through; an older version is chosen by tag, or by its id. */
const LIMIT = 100

interface Known {
  refs: Refs
  versions: Version[]
}

export function useRevisions(datasetId: () => string | null, revision: () => string | null) {
  const { t } = useI18n()
  const format = useFormat()

  const known = useResource<Known | null>(
    async (signal) => {
      const dataset_id = datasetId()
      if (dataset_id === null) return null
      const path = { dataset_id }
      const [refs, page] = await Promise.all([
        unwrap(api.GET('/api/v1/datasets/{dataset_id}/refs', { params: { path }, signal })),
        unwrap(
          api.GET('/api/v1/datasets/{dataset_id}/versions', { params: { path, query: { limit: LIMIT } }, signal }),
        ),
      ])
      return { refs, versions: page.items }
    },
    { watch: datasetId },
  )

  const chosen = computed<Version | null>(() => {
    const it = known.data.value
    if (it === null) return null
    const id = findVersion(revision() ?? MAIN, it.refs, it.versions)
    return it.versions.find((version) => version.id === id) ?? null
  })

  /** Branches and tags move or stay by name; a job keeps the version that they mean when it is launched. */
  const versionOptions = computed<(SelectOption | SelectGroupOption)[]>(() => {
    const it = known.data.value
    if (it === null) return []
    const numberOf = (id: string): string => {
      const version = it.versions.find((one) => one.id === id)
      return version === undefined
        ? id.slice(0, 8)
        : t('datasets.versions.number', { n: format.integer(version.number) })
    }
    const named = (refs: Refs['branches']): SelectOption[] =>
      refs.map((ref) => ({ value: ref.name, label: `${ref.name} · ${numberOf(ref.version)}` }))
    const group = (key: string, children: SelectOption[]): SelectGroupOption[] =>
      children.length === 0 ? [] : [{ type: 'group', key, label: t(`jobs.launch.revision.${key}`), children }]
    const current = revision()
    const isListed =
      current === null ||
      [...it.refs.branches, ...it.refs.tags].some((ref) => ref.name === current) ||
      it.versions.some((one) => one.id === current)
    return [
      ...group('branches', named(it.refs.branches)),
      ...group('tags', named(it.refs.tags)),
      ...group(
        'versions',
        it.versions.map((one) => ({
          value: one.id,
          label: [numberOf(one.id), one.message].filter((part) => part !== '').join(' · '),
        })),
      ),
      ...(isListed ? [] : [{ value: current, label: current.slice(0, 12) }]),
    ]
  })
  const splitOptions = computed<SelectOption[]>(() =>
    Object.entries(chosen.value?.splits ?? {}).map(([name, rows]) => ({
      value: name,
      label: t('jobs.launch.revision.splitRows', { split: name, n: format.integer(rows) }, rows),
    })),
  )
  /** What is taken unasked: train, the only one, or the first. */
  const usualSplit = computed(() => {
    const names = Object.keys(chosen.value?.splits ?? {})
    return names.includes('train') ? 'train' : (names[0] ?? null)
  })

  return {
    known,
    chosen,
    versionOptions,
    splitOptions,
    usualSplit,
    isLoading: computed(() => known.isLoading.value && datasetId() !== null),
  }
}
