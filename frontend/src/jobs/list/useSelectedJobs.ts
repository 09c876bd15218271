/** The chosen jobs, also those that a filter or a later page keeps out of the list. */
import { computed, type Ref, shallowRef, watch } from 'vue'

import { api, unwrap } from '@/api/client'
import { type ApiError, asApiError } from '@/api/errors'

import type { Job } from '../types'

/** `drop` takes jobs that are no more from the choice; `tell` says why others could not be read. */
export function useSelectedJobs(
  listed: Readonly<Ref<readonly Job[]>>,
  selected: Readonly<Ref<ReadonlySet<string>>>,
  drop: (ids: string[]) => void,
  tell: (error: ApiError) => void,
) {
  /** As they were read last. */
  const known = shallowRef<ReadonlyMap<string, Job>>(new Map())
  const jobs = computed(() => [...selected.value].flatMap((id) => known.value.get(id) ?? []))

  /** What of these cannot be read is thrown, but for jobs that are no more. */
  async function read(ids: readonly string[]): Promise<void> {
    const gone: string[] = []
    const found = await Promise.all(
      ids.map(async (job_id) => {
        try {
          return await unwrap(api.GET('/api/v1/jobs/{job_id}', { params: { path: { job_id } } }))
        } catch (cause) {
          const error = asApiError(cause)
          if (error.code !== 'job_not_found') throw error
          gone.push(job_id)
          return null
        }
      }),
    )
    if (gone.length > 0) drop(gone)
    known.value = new Map([...known.value, ...found.flatMap((job) => (job === null ? [] : [[job.id, job] as const]))])
  }

  async function tryToRead(ids: readonly string[]): Promise<boolean> {
    try {
      await read(ids)
      return true
    } catch (cause) {
      tell(asApiError(cause))
      return false
    }
  }

  function unlisted(): string[] {
    const shown = new Set(listed.value.map((job) => job.id))
    return [...selected.value].filter((id) => !shown.has(id))
  }

  watch(
    [listed, selected],
    () => {
      const rows = new Map(listed.value.map((job) => [job.id, job]))
      known.value = new Map(
        [...selected.value].flatMap((id) => {
          const job = rows.get(id) ?? known.value.get(id)
          return job === undefined ? [] : [[id, job] as const]
        }),
      )
    },
    { immediate: true },
  )
  // An address may name jobs that no list had yet.
  watch(
    () =>
      unlisted()
        .filter((id) => !known.value.has(id))
        .join(','),
    (ids) => {
      if (ids !== '') void tryToRead(ids.split(','))
    },
    { immediate: true },
  )

  /** All that are chosen, as they are now; null where they cannot be read. */
  async function readAll(): Promise<Job[] | null> {
    return (await tryToRead(unlisted())) ? jobs.value : null
  }

  return { jobs, readAll }
}
