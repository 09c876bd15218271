/** Votes on the newest answers of two columns. */
import { computed, type Ref, ref, watch } from 'vue'

import { useAttempt } from '@/ui/useAttempt'

import type { Settings } from './types'
import { areComparable, sendVote, type Verdict, type Voted } from './votes'

/** What a column tells of itself. */
interface Part {
  hasAnswer: boolean
  model: string
  position: number
  voted: () => Voted | null
}

interface Context {
  parts: Readonly<Ref<readonly Part[] | null>>
  prompts: Ref<readonly string[]>
  settings: Ref<Settings>
  isBlind: Ref<boolean>
}

export function useVoting({ parts, prompts, settings, isBlind }: Context) {
  const { isBusy, attempt } = useAttempt()
  const given = ref<Verdict | null>(null)
  const version = ref(0)

  /** The two answers, in the order of their columns; null unless there are just two that are whole. */
  const sides = computed<[Voted, Voted] | null>(() => {
    // The list of refs keeps its order when columns change places.
    const columns = [...(parts.value ?? [])].sort((one, other) => one.position - other.position)
    if (columns.length !== 2 || prompts.value.length === 0 || !columns.every(({ hasAnswer }) => hasAnswer)) return null
    const [a, b] = columns.map((column) => column.voted())
    return a != null && b != null ? [a, b] : null
  })
  const isComparable = computed(() => sides.value !== null && areComparable(...sides.value))

  const isEdited = computed(() => sides.value?.some((side) => side.isEdited === true) ?? false)

  async function vote(verdict: Verdict): Promise<void> {
    if (sides.value === null || !isComparable.value || isEdited.value || given.value !== null || isBusy.value) return
    const [a, b] = sides.value
    await attempt(async () => {
      await sendVote({ a, b, verdict, isBlind: isBlind.value, settings: settings.value })
      given.value = verdict
      version.value += 1
    })
  }

  // Each answer is voted on once.
  watch(
    () => (sides.value === null ? null : JSON.stringify(sides.value)),
    () => (given.value = null),
  )
  return { sides, isComparable, isEdited, isBusy, given, version, vote }
}
