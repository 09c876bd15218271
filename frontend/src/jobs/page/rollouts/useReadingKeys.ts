/** Keys of a list of responses: from one to the next, and back. The browser opens the one that has the focus. */
import { type Ref } from 'vue'

import { useShortcut } from '@/composables/shortcuts'

export function useReadingKeys(list: Ref<HTMLElement | null>): void {
  function go(step: 1 | -1): void {
    const buttons = [...(list.value?.querySelectorAll<HTMLElement>('[data-read]') ?? [])]
    const at = buttons.findIndex((button) => button === document.activeElement)
    const next = buttons[at < 0 ? (step === 1 ? 0 : buttons.length - 1) : at + step]
    next?.focus()
    next?.closest('article')?.scrollIntoView({ block: 'nearest' })
  }

  useShortcut(['j'], 'jobs.reading.key.next', () => {
    go(1)
  })
  useShortcut(['k'], 'jobs.reading.key.previous', () => {
    go(-1)
  })
}
