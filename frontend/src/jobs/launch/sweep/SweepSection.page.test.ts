import { nextTick, reactive } from 'vue'
import { describe, expect, it } from 'vitest'

import { mount } from '@/testing/withSetup'

import { emptySweep, type SweepDraft } from './draft'
import SweepSection from './SweepSection.vue'

const preview = {
  runs: 2,
  trials: 2,
  parallel: 1,
  examples: [],
  objective: { metric: 'response_length/mean', mode: 'max', take: 'last' },
}

describe('the objective of a sweep', () => {
  it('says what the platform takes a metric for, and the direction that was chosen instead', async () => {
    const draft = reactive<SweepDraft>({ ...emptySweep(), isOpen: true, seeds: '1-2', metric: 'response_length/mean' })
    const props = reactive({ draft, metrics: [], preview, issues: [], isStale: false, price: null })
    const { root, end } = mount(SweepSection, props)
    const field = () => root.querySelector('[data-test=sweep-mode]')?.textContent ?? ''
    expect(field()).toContain('Automatic: higher is better')

    props.isStale = true
    await nextTick()
    expect(field()).not.toContain('higher')

    draft.mode = 'min'
    await nextTick()
    expect(field()).toContain('lower is better')
    end()
  })
})
