import { describe, expect, it, vi } from 'vitest'

import { mount } from '@/testing/withSetup'

import VoteBar from './VoteBar.vue'
import type { Verdict } from './votes'

const FACTS = {
  models: ['base', 'sft'],
  isBlind: false,
  isBusy: false,
  given: null as Verdict | null,
  isComparable: true,
  isEdited: false,
  isPair: true,
}

/** The bar, and what it tells its page. */
function show(changes: Partial<typeof FACTS> = {}) {
  const told = { onVote: vi.fn(), onNext: vi.fn(), onPair: vi.fn() }
  const { root, end } = mount(VoteBar, { ...FACTS, ...changes, ...told })
  const find = (name: string) => root.querySelector<HTMLButtonElement>(`[data-test="${name}"]`)
  return { root, told, find, end }
}

describe('the bar for votes', () => {
  it('takes each verdict by its button, which names its key', () => {
    const { told, find, end } = show()

    for (const verdict of ['a', 'b', 'tie', 'neither']) find(`vote-${verdict}`)?.click()

    expect(told.onVote.mock.calls.flat()).toEqual(['a', 'b', 'tie', 'neither'])
    expect(find('vote-tie')?.getAttribute('aria-keyshortcuts')).toBe('3')
    end()
  })

  it('names the models of a blind vote after it was given, and not before', () => {
    const open = show({ isBlind: true })
    expect(open.root.textContent).not.toMatch(/base|sft/)
    open.find('save-pair')?.click()
    expect(open.told.onPair).toHaveBeenCalledWith(['A', 'B'])
    open.end()

    const given = show({ isBlind: true, given: 'b' })
    expect(given.find('revealed')?.textContent).toMatch(/A.*base.*B.*sft/)
    expect(given.find('vote-a')).toBeNull()
    given.find('next')?.click()
    expect(given.told.onNext).toHaveBeenCalledOnce()
    given.end()
  })

  it('says why answers cannot be voted on', () => {
    const reasons = [{ isComparable: false }, { isEdited: true }].map((changes) => {
      const { root, find, end } = show(changes)
      expect(['a', 'b', 'tie', 'neither'].map((verdict) => find(`vote-${verdict}`)?.disabled)).toEqual(
        Array(4).fill(true),
      )
      const reason = root.querySelector('[role=status]')?.textContent ?? ''
      end()
      return reason
    })

    expect(reasons[0]).not.toBe('')
    expect(reasons[1]).not.toBe('')
    expect(reasons[0]).not.toBe(reasons[1])
  })
})
