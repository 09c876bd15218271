/** The endpoints of the platform, followed closely while one changes, and how they are started and stopped. */
import { computed } from 'vue'

import { api, unwrap } from '@/api/client'
import { readAllPages } from '@/api/useCursorList'
import { type Resource, useResource } from '@/api/useResource'
import { useReadyModels } from '@/models/useReadyModels'

import type { Endpoint } from './types'

const SOON_MS = 1500
const LATER_MS = 10_000
const PAGE_SIZE = 200
/** A checkpoint as requests name it. */
const CHECKPOINT = /^(job_[a-z2-7]{12}):(\d+)$/

function isMoving({ state }: Endpoint): boolean {
  return state === 'starting' || state === 'stopping'
}

export interface Choice {
  value: string
  label: string
}

export function useEndpoints() {
  const { resource: models } = useReadyModels()
  const resource: Resource<Endpoint[]> = useResource<Endpoint[]>(
    (signal) => readAllPages((cursor) => unwrap(api.GET('/api/v1/endpoints', { params: { query: { limit: PAGE_SIZE, cursor } }, signal }))),
    { intervalMs: (all) => (all?.some(isMoving) === true ? SOON_MS : LATER_MS) },
  )
  const byName = computed(() => new Map((resource.data.value ?? []).map((endpoint) => [endpoint.name, endpoint])))

  /** Models by name, then checkpoints that were served; any other checkpoint can be typed. */
  const choices = computed<Choice[]>(() => {
    const named = (models.data.value ?? []).map(({ name }) => ({ value: name, label: name }))
    const served = (resource.data.value ?? []).filter(({ kind }) => kind === 'checkpoint')
    return [...named, ...served.map(({ name, job, step }) => ({ value: name, label: job?.name == null ? name : `${job.name} @ ${String(step)}` }))]
  })

  async function start(name: string): Promise<void> {
    const checkpoint = CHECKPOINT.exec(name)
    const [, jobId, step] = checkpoint ?? []
    if (jobId !== undefined && step !== undefined) {
      await unwrap(api.POST('/api/v1/jobs/{job_id}/checkpoints/{step}/endpoint', { params: { path: { job_id: jobId, step: Number(step) } } }))
    } else {
      const model = (models.data.value ?? []).find((each) => each.name === name || each.id === name)
      await unwrap(api.POST('/api/v1/models/{model_id}/endpoint', { params: { path: { model_id: model?.id ?? name } } }))
    }
    await resource.refresh()
  }

  /** Whether training jobs that wait for a slot may stop it. */
  async function setPreemptible(endpoint: Endpoint, isPreemptible: boolean): Promise<void> {
    await unwrap(api.PATCH('/api/v1/endpoints/{endpoint_id}', { params: { path: { endpoint_id: endpoint.id } }, body: { preemptible: isPreemptible } }))
    await resource.refresh()
  }

  async function stop(endpoint: Endpoint): Promise<void> {
    await unwrap(api.DELETE('/api/v1/endpoints/{endpoint_id}', { params: { path: { endpoint_id: endpoint.id } } }))
    await resource.refresh()
  }

  return { resource, models, byName, choices, start, stop, setPreemptible }
}
