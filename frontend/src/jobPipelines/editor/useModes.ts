/** A new pipeline as a form or as text: each goes on from what the other one says. */
import { computed, ref } from 'vue'

import { useDebouncedQuery } from '@/api/useDebouncedQuery'

import type { DocumentChecked, JobPipelineCreate } from '../types'
import { fitsForm, toText } from './document'
import { draftOfStages, type PipelineDraft, toRequest } from './draft'

export const MODES = ['form', 'yaml'] as const
type Mode = (typeof MODES)[number]

type Content = Pick<JobPipelineCreate, 'name' | 'description' | 'stages'>

/** `draft` is what the form holds, and is changed in place; `text` is one that was being written. */
export function useModes(
  draft: PipelineDraft,
  check: (yaml: string, signal: AbortSignal) => Promise<DocumentChecked>,
  text: string | null = null,
) {
  const mode = ref<Mode>(text === null ? 'form' : 'yaml')
  const written = ref(text ?? '')
  /** The text that says the same as the form: one that was only looked at changes nothing there. */
  const known = ref('')
  /** What the form held when it said the same as the text. */
  let knownDraft = ''

  const isBlank = computed(() => written.value.trim() === '')
  const checked = useDebouncedQuery(() => (mode.value === 'yaml' && !isBlank.value ? written.value : null), check)
  /** What the text stands for; null while it is being checked, and where something is wrong with it. */
  const document = computed(() =>
    checked.isStale.value || checked.error.value !== null ? null : (checked.answer.value?.document ?? null),
  )

  /** Nothing that was typed may be lost on the way. */
  const canBeForm = computed(
    () => written.value === known.value || isBlank.value || (document.value !== null && fitsForm(document.value)),
  )
  /** Why the text cannot be a form; nothing is said while it is being checked. */
  const obstacle = computed(() => {
    if (canBeForm.value || checked.isAsking.value) return null
    return document.value === null ? 'wrong' : 'unfit'
  })

  function hold({ name, description, stages }: Content): void {
    Object.assign(draft, { name, description: description ?? '', ...draftOfStages(stages) })
  }

  function toForm(): void {
    if (written.value !== known.value && document.value !== null) {
      hold(document.value)
      known.value = written.value
      knownDraft = JSON.stringify(draft)
    }
    mode.value = 'form'
  }

  function toYaml(): void {
    const said = JSON.stringify(draft)
    // A text that says the same already keeps its comments and its order.
    if (draft.stages.length > 0 && (said !== knownDraft || isBlank.value)) {
      written.value = toText(toRequest(draft))
      known.value = written.value
      knownDraft = said
    }
    mode.value = 'yaml'
  }

  function setMode(next: Mode): void {
    if (next === 'yaml') toYaml()
    else if (canBeForm.value) toForm()
  }

  /** Begins with another pipeline: as a form, or as text where the form cannot hold it. */
  function begin(content: Content): void {
    if (fitsForm(content)) {
      hold(content)
      return
    }
    written.value = toText({ start: false, ...content })
    mode.value = 'yaml'
  }

  /** The text where it says something else than the form. */
  const ownText = computed(() => (mode.value === 'yaml' && written.value !== known.value ? written.value : null))

  function startOver(): void {
    written.value = known.value = knownDraft = ''
    mode.value = 'form'
  }

  return { mode, written, checked, document, canBeForm, obstacle, ownText, setMode, begin, startOver }
}
