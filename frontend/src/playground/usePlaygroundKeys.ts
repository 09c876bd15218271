/** Keys of the playground, where nothing is being typed: votes, the next round, and the end of an answer. */
import { useShortcut } from '@/composables/shortcuts'

import { CHOICES, NEXT_KEY, type Verdict } from './votes'

interface Actions {
  vote: (verdict: Verdict) => void
  next: () => void
  halt: () => void
}

export function usePlaygroundKeys({ vote, next, halt }: Actions): void {
  for (const { verdict, key } of CHOICES)
    useShortcut([key], `playground.keys.${verdict}`, () => {
      vote(verdict)
    })
  useShortcut([NEXT_KEY], 'playground.keys.next', next)
  useShortcut(['Escape'], 'playground.keys.halt', halt)
}
