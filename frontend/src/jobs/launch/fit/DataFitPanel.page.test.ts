import { describe, expect, it } from 'vitest'

import { mount } from '@/testing/withSetup'

import DataFitPanel from './DataFitPanel.vue'

const FIT = {
  wanted: 'verl-rl',
  found: 'preference',
  read_as: 'preference',
  columns: {},
  fits: false,
  missing: [],
  conversion: null,
  offers: [],
  sample: null,
}

function panel(better: object | null, onRecipe: (id: string) => void = () => undefined) {
  const props = {
    part: 'training',
    fit: FIT,
    reading: { format: null, columns: {} },
    columns: [],
    issues: new Map(),
    isStale: false,
    better,
    onRecipe,
  }
  return mount(DataFitPanel, props)
}

describe('data that another recipe suits', () => {
  it('lead to that recipe with one click', () => {
    const chosen: string[] = []
    const { root, end } = panel({ id: 'dpo', title: { en: 'DPO', zh: 'DPO' } }, (id) => chosen.push(id))
    const button = root.querySelector<HTMLButtonElement>('[data-test=use-recipe]')
    button?.click()

    expect(button?.textContent?.trim()).toBe('Use DPO')
    expect(button?.parentElement?.textContent).toContain('Usual for preference pairs:')
    expect(chosen).toEqual(['dpo'])
    end()
  })

  it('say nothing of one where there is none', () => {
    const { root, end } = panel(null)

    expect(root.querySelector('[data-test=use-recipe]')).toBeNull()
    end()
  })
})
