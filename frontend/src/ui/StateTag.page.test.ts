import { describe, expect, it } from 'vitest'

import { messages } from '@/i18n/messages'
import { mount } from '@/testing/withSetup'

import { MARKS, type State } from './state'
import StateTag from './StateTag.vue'

const WORDS = [
  ['job', messages.en.state],
  ['dataset', messages.en.datasets.state],
  ['model', messages.en.models.state],
  ['sweep', messages.en.sweeps.state],
] as const

describe('the mark of a state', () => {
  it.each(WORDS)('is there with a word for every state of a %s', (of, texts) => {
    for (const [state, word] of Object.entries(texts)) {
      const { root, end } = mount(StateTag, { state, of })

      expect(root.querySelector(`[data-state=${state}] svg path`)?.getAttribute('d')).toBeTruthy()
      expect(root.textContent.trim()).toBe(word)
      end()
    }
  })

  it('tells states of one kind apart without colour', () => {
    const shapeOf = (state: string) => MARKS[state as State].shape

    for (const [, texts] of WORDS) {
      const shapes = Object.keys(texts)
        .filter((state) => state !== 'cancelled')
        .map(shapeOf)
      expect(new Set(shapes).size).toBe(shapes.length)
    }
  })
})
