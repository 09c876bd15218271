/** The pipeline that is edited: where it came from, whether it was changed since, and how it is kept. */
import { computed, reactive, ref, shallowRef, watch } from 'vue'
import { useI18n } from 'vue-i18n'
import { useRoute } from 'vue-router'

import { api, unwrap } from '@/api/client'
import { ApiError, asApiError } from '@/api/errors'

import type { Pipeline, SavedPipeline } from '../types'
import { draftOf, emptyDraft, type PipelineDraft, readSteps, toPipeline } from './draft'

/** Parts of the address that say what an editor begins with. */
export const BEGINNINGS: ReadonlySet<string> = new Set(['steps', 'run', 'pipelineVersion'])

export function useEditor(id: () => string | null) {
  const { t } = useI18n()
  const route = useRoute()
  const draft = reactive<PipelineDraft>(emptyDraft())
  /** What is kept, as it is now. */
  const saved = shallowRef<SavedPipeline | null>(null)
  /** The version that the form began with; not always the newest. */
  const version = ref<number | null>(null)
  const loadError = shallowRef<ApiError | null>(null)
  const isLoading = ref(false)
  /** The pipeline as that version has it. */
  const keptText = ref('')

  const pipeline = computed<Pipeline>(() => toPipeline(draft, t('pipelines.editor.unnamed')))
  const text = computed(() => JSON.stringify(pipeline.value))
  const isDirty = computed(() => text.value !== keptText.value && draft.steps.length > 0)

  function take(next: PipelineDraft): void {
    Object.assign(draft, next)
  }

  function fromAddress(name: string): string | null {
    const value = route.query[name]
    return typeof value === 'string' && value !== '' ? value : null
  }

  /** A pipeline that is not kept (yet): of the steps in the address, or what a run was of. */
  async function readNew(): Promise<() => void> {
    const run = fromAddress('run')
    const begun =
      run === null
        ? null
        : await unwrap(api.GET('/api/v1/pipelines/runs/{task_id}', { params: { path: { task_id: run } } }))
    return () => {
      saved.value = null
      version.value = null
      take(begun === null ? { ...emptyDraft(), steps: readSteps(route.query.steps) ?? [] } : draftOf(begun.pipeline))
      keptText.value = ''
    }
  }

  /** What is kept, at the version that the address names, else at the newest. */
  async function readSaved(pipelineId: string): Promise<() => void> {
    const params = { path: { pipeline_id: pipelineId } }
    const read = await unwrap(api.GET('/api/v1/pipelines/{pipeline_id}', { params }))
    const number = Number(fromAddress('pipelineVersion') ?? read.version)
    const pipeline = number === read.version ? read.pipeline : await readVersion(pipelineId, number)
    return () => {
      saved.value = read
      version.value = number
      take(draftOf(pipeline))
      keptText.value = text.value
    }
  }

  async function readVersion(pipelineId: string, number: number): Promise<Pipeline> {
    const { items } = await unwrap(
      api.GET('/api/v1/pipelines/{pipeline_id}/versions', { params: { path: { pipeline_id: pipelineId } } }),
    )
    const found = items.find((one) => one.number === number)
    if (found === undefined)
      throw new ApiError({
        code: 'pipeline_version_not_found',
        message: `The pipeline has no version ${number}.`,
        status: 404,
      })
    return found.pipeline
  }

  async function load(): Promise<void> {
    const wanted = id()
    loadError.value = null
    // After the first saving the address gets the id of what is here already.
    if (wanted !== null && saved.value?.id === wanted) return
    isLoading.value = true
    try {
      const show = await (wanted === null ? readNew() : readSaved(wanted))
      // The address may be that of another pipeline by now.
      if (id() === wanted) show()
    } catch (cause) {
      const error = asApiError(cause)
      if (id() === wanted) loadError.value = error
    } finally {
      if (id() === wanted) isLoading.value = false
    }
  }

  /** Keeps it: as the next version of what it was, or as a pipeline of its own. */
  async function save(fields: {
    name: string
    description: string
    message: string
    isNew: boolean
  }): Promise<SavedPipeline> {
    const body = {
      pipeline: { ...pipeline.value, name: fields.name, description: fields.description },
      message: fields.message,
    }
    const known = saved.value
    const read =
      known === null || fields.isNew
        ? await unwrap(api.POST('/api/v1/pipelines', { body }))
        : await unwrap(
            api.POST('/api/v1/pipelines/{pipeline_id}/versions', { params: { path: { pipeline_id: known.id } }, body }),
          )
    saved.value = read
    version.value = read.version
    draft.name = read.name
    draft.description = read.description
    keptText.value = text.value
    return read
  }

  watch(id, () => void load(), { immediate: true })

  return { draft, saved, version, pipeline, isDirty, isLoading, loadError, take, save, load }
}
