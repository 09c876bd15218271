/** The text of an answer that is being written, a few times a second: drawing it costs more the longer it is. */
import { onScopeDispose, type Ref, ref, watch } from 'vue'

import { type Answer, textOf } from './types'

const LEAST_MS = 80
/** A text of 20,000 characters is drawn five times a second. */
const MS_PER_CHARACTER = 0.01

export function useSettledText(answer: () => Answer): Ref<string> {
  const shown = ref(textOf(answer()))
  let timer: ReturnType<typeof setTimeout> | null = null

  function show(): void {
    if (timer !== null) clearTimeout(timer)
    timer = null
    shown.value = textOf(answer())
  }

  // The number of tokens says as much as the text, and costs nothing to find out.
  watch(
    () => [answer(), answer().tokens.length, answer().state, answer().edited],
    () => {
      if (answer().state !== 'writing') show()
      else timer ??= setTimeout(show, Math.max(LEAST_MS, shown.value.length * MS_PER_CHARACTER))
    },
  )
  onScopeDispose(() => {
    if (timer !== null) clearTimeout(timer)
  })
  return shown
}
