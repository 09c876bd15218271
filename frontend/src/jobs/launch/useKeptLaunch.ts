/** Keeps a launch that somebody has begun, so that leaving the form loses nothing. */
import type { Ref } from 'vue'

import { useKeptDraft } from '@/composables/useKeptDraft'

import type { Draft } from './draft'
import { type Kept, keptLaunches } from './kept'
import type { SweepDraft } from './sweep/draft'

/** `isSettled` is true once the form has filled in what it fills in by itself: only what differs from that is kept. */
export function useKeptLaunch(
  address: string,
  kept: Kept | null,
  draft: Draft,
  sweep: SweepDraft,
  isSettled: Readonly<Ref<boolean>>,
) {
  return useKeptDraft<Kept>({
    drafts: keptLaunches,
    address,
    kept,
    state: () => ({ draft, sweep }),
    // Whether the sweep's part is folded away is nothing to lose.
    essence: (state) => ({ ...state.draft, sweep: { ...state.sweep, isOpen: false } }),
    isSettled,
  })
}
