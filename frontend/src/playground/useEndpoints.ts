/** The endpoints of the platform, followed closely while one changes, and how they are started and stopped. */
import { computed } from 'vue'

import { api, unwrap } from '@/api/client'
import { type Resource, useResource } from '@/api/useResource'
import { useReadyModels, writesText } from '@/models'
import { aliasesOf } from '@/registry'

import { followEndpoints } from './endpointList'
import type { Endpoint } from './types'

const SOON_MS = 1500
const LATER_MS = 10_000
/** A checkpoint as requests name it. */
export const CHECKPOINT = /^(job_[a-z2-7]{12}):(\d+)$/

function isMoving({ state }: Endpoint): boolean {
  return state === 'starting' || state === 'stopping'
}

export interface Choice {
  value: string
  label: string
}

/** What a checkpoint is called: by its job, where that has a name. */
export function labelOf(value: string, jobName: string | null | undefined, step: number | null): string {
  return jobName == null ? value : `${jobName} @ ${String(step)}`
}

/** Choices of which no two are called the same: jobs with one name are told apart by their IDs. */
export function distinct(choices: readonly Choice[]): Choice[] {
  const values = new Map<string, Set<string>>()
  for (const { value, label } of choices) values.set(label, (values.get(label) ?? new Set()).add(value))
  return choices.map(({ value, label }) => {
    const [, jobId] = CHECKPOINT.exec(value) ?? []
    return { value, label: jobId === undefined || values.get(label)?.size === 1 ? label : `${label} (${jobId})` }
  })
}

export function useEndpoints() {
  const { resource: models } = useReadyModels()
  const resource: Resource<Endpoint[]> = useResource<Endpoint[]>(followEndpoints(), {
    intervalMs: (all) => (all?.some(isMoving) === true ? SOON_MS : LATER_MS),
  })
  const registry = useResource((signal) => unwrap(api.GET('/api/v1/registry', { signal })))
  /** Models that have names with versions, by each name of theirs: `support-bot:3`, `support-bot:production`. */
  const registered = computed(() => {
    const found = new Map<string, { id: string; model: string; isAlias: boolean }>()
    for (const named of registry.data.value?.items ?? []) {
      const versions = new Map(
        named.versions
          .filter(({ exists }) => exists)
          .map((version) => [version.number, { id: version.model, model: version.model_name }]),
      )
      for (const [number, version] of versions)
        found.set(`${named.name}:${String(number)}`, { ...version, isAlias: false })
      for (const { alias, version } of aliasesOf(named)) {
        const meant = versions.get(version)
        if (meant !== undefined) found.set(`${named.name}:${alias}`, { ...meant, isAlias: true })
      }
    }
    return found
  })

  /** The model that requests mean by a name, as the API finds it; null for checkpoints, and for what is not known here. */
  function modelIdOf(name: string): string | null {
    const all = models.data.value ?? []
    const found = all.find(({ id }) => id === name) ?? all.find((each) => each.name === name)
    return found?.id ?? registered.value.get(name)?.id ?? null
  }

  function endpointOf(name: string): Endpoint | undefined {
    const id = modelIdOf(name)
    return (resource.data.value ?? []).find((endpoint) =>
      id === null ? endpoint.name === name : endpoint.kind === 'model' && endpoint.model?.id === id,
    )
  }

  /** Whether it is known what to start; a request may start more, such as the newest checkpoint of a job. */
  function canStart(name: string): boolean {
    return CHECKPOINT.test(name) || modelIdOf(name) !== null
  }

  /** Whether what is meant has no chat template; checkpoints and adapters have that of the model they come from. */
  function isText(name: string): boolean {
    const byId = (id: string | null | undefined) => models.data.value?.find((each) => each.id === id)
    const named = byId(modelIdOf(name) ?? endpointOf(name)?.model?.id)
    const meant = named?.lineage.form === 'adapter' ? byId(named.lineage.model_id) : named
    return meant?.has_chat_template === false
  }

  /** Models by name, then their aliases, then checkpoints that were served; others are chosen by their job, or typed. */
  const choices = computed<Choice[]>(() => {
    const writers = (models.data.value ?? []).filter(writesText)
    const ids = new Set(writers.map(({ id }) => id))
    const named = writers.map(({ name }) => ({ value: name, label: name }))
    const aliases = [...registered.value]
      .filter(([, { id, isAlias }]) => isAlias && ids.has(id))
      .map(([name, { model }]) => ({ value: name, label: `${name} (${model})` }))
    const served = (resource.data.value ?? []).filter(({ kind }) => kind === 'checkpoint')
    return [
      ...named,
      ...aliases,
      ...served.map(({ name, job, step }) => ({ value: name, label: labelOf(name, job?.name, step) })),
    ]
  })

  async function start(name: string): Promise<void> {
    const checkpoint = CHECKPOINT.exec(name)
    const [, jobId, step] = checkpoint ?? []
    if (jobId !== undefined && step !== undefined) {
      await unwrap(
        api.POST('/api/v1/jobs/{job_id}/checkpoints/{step}/endpoint', {
          params: { path: { job_id: jobId, step: Number(step) } },
        }),
      )
    } else {
      await unwrap(
        api.POST('/api/v1/models/{model_id}/endpoint', { params: { path: { model_id: modelIdOf(name) ?? name } } }),
      )
    }
    await resource.refresh()
  }

  /** Whether training jobs that wait for a slot may stop it. */
  async function setPreemptible(endpoint: Endpoint, isPreemptible: boolean): Promise<void> {
    await unwrap(
      api.PATCH('/api/v1/endpoints/{endpoint_id}', {
        params: { path: { endpoint_id: endpoint.id } },
        body: { preemptible: isPreemptible },
      }),
    )
    await resource.refresh()
  }

  async function stop(endpoint: Endpoint): Promise<void> {
    await unwrap(api.DELETE('/api/v1/endpoints/{endpoint_id}', { params: { path: { endpoint_id: endpoint.id } } }))
    await resource.refresh()
  }

  return { resource, models, endpointOf, canStart, isText, choices, start, stop, setPreemptible }
}
