/** The pipeline that is edited: where it came from, whether it was changed since, and how it is kept. */
import { computed, reactive, ref, shallowRef, watch } from 'vue'
import { useI18n } from 'vue-i18n'
import { useRoute } from 'vue-router'

import { api, unwrap } from '@/api/client'
import { type ApiError, asApiError } from '@/api/errors'

import type { Pipeline, SavedPipeline } from '../types'
import { draftOf, emptyDraft, type PipelineDraft, readSteps, toPipeline } from './draft'

export function useEditor(id: () => string | null) {
  const { t } = useI18n()
  const route = useRoute()
  const draft = reactive<PipelineDraft>(emptyDraft())
  const saved = shallowRef<SavedPipeline | null>(null)
  const loadError = shallowRef<ApiError | null>(null)
  const isLoading = ref(false)
  /** The pipeline as it was when it was last kept. */
  const keptText = ref('')

  const pipeline = computed<Pipeline>(() => toPipeline(draft, t('pipelines.editor.unnamed')))
  const text = computed(() => JSON.stringify(pipeline.value))
  const isDirty = computed(() => text.value !== keptText.value && draft.steps.length > 0)

  function take(next: PipelineDraft): void {
    Object.assign(draft, next)
  }

  /** Shows what is kept, at one of its versions. */
  function show(read: SavedPipeline): void {
    saved.value = read
    take(draftOf(read.pipeline))
    keptText.value = text.value
  }

  async function load(): Promise<void> {
    const wanted = id()
    loadError.value = null
    if (wanted === null) {
      saved.value = null
      take({ ...emptyDraft(), steps: readSteps(route.query.steps) ?? [] })
      keptText.value = ''
      return
    }
    // After the first saving the address gets the id of what is here already.
    if (saved.value?.id === wanted) return
    isLoading.value = true
    try {
      const read = await unwrap(api.GET('/api/v1/pipelines/{pipeline_id}', { params: { path: { pipeline_id: wanted } } }))
      // The address may be that of another pipeline by now.
      if (id() === wanted) show(read)
    } catch (cause) {
      const error = asApiError(cause)
      if (id() === wanted) loadError.value = error
    } finally {
      if (id() === wanted || id() === null) isLoading.value = false
    }
  }

  /** Keeps it: as the next version of what it was, or as a pipeline of its own. */
  async function save(fields: { name: string; description: string; message: string; isNew: boolean }): Promise<SavedPipeline> {
    const body = { pipeline: { ...pipeline.value, name: fields.name, description: fields.description }, message: fields.message }
    const known = saved.value
    const read =
      known === null || fields.isNew
        ? await unwrap(api.POST('/api/v1/pipelines', { body }))
        : await unwrap(api.POST('/api/v1/pipelines/{pipeline_id}/versions', { params: { path: { pipeline_id: known.id } }, body }))
    saved.value = read
    draft.name = read.name
    draft.description = read.description
    keptText.value = text.value
    return read
  }

  watch(id, () => void load(), { immediate: true })

  return { draft, saved, pipeline, isDirty, isLoading, loadError, take, save, load }
}
