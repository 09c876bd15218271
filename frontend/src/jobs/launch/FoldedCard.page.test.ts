import { nextTick, reactive } from 'vue'
import { afterEach, describe, expect, it } from 'vitest'

import { mount } from '@/testing/withSetup'

import AfterwardsSection from './AfterwardsSection.vue'
import { emptyDraft, overrideRow } from './draft'
import { focusInside } from './focusField'
import OverrideRows from './OverrideRows.vue'

let end = (): void => undefined
afterEach(() => {
  end()
})

describe('parts of the form that most launches do without', () => {
  it('are folded away, and say what they hold once they hold something', async () => {
    const draft = reactive(emptyDraft())
    const mounted = mount(AfterwardsSection, { recipe: { headline_metrics: [] }, draft, issues: new Map() })
    end = mounted.end
    const fold = mounted.root.querySelector('details')
    expect(mounted.root.querySelector('[role=group]')?.getAttribute('aria-label')).toBe('After training')
    expect([fold?.open, fold?.querySelector('summary')?.textContent]).toEqual([false, 'After trainingNothing set'])

    draft.exportName = 'adder'
    await nextTick()

    expect([fold?.open, fold?.querySelector('summary')?.textContent]).toEqual([true, 'After trainingadder'])
  })

  it('open where something is wrong inside', () => {
    const issues = new Map([
      ['export_as.name', [{ code: 'x', field: 'export_as.name', message: 'taken', severity: 'error' }]],
    ])
    const mounted = mount(AfterwardsSection, { recipe: { headline_metrics: [] }, draft: emptyDraft(), issues })
    end = mounted.end

    expect(mounted.root.querySelector('details')?.open).toBe(true)
  })

  it('name the engine settings that they hold', () => {
    const draft = { ...emptyDraft(), overrides: [overrideRow('trainer.balance_batch', 'false'), overrideRow()] }
    const mounted = mount(OverrideRows, { draft, issues: new Map() })
    end = mounted.end

    expect(mounted.root.querySelector('details')?.open).toBe(true)
    expect(mounted.root.querySelector('summary')?.textContent).toContain('trainer.balance_batch')
  })

  it('open where somebody is led into them', () => {
    const mounted = mount(OverrideRows, { draft: emptyDraft(), issues: new Map() })
    end = mounted.end
    const part = mounted.root.querySelector<HTMLElement>('[data-field=overrides]')
    if (part !== null) part.scrollIntoView = () => undefined

    focusInside(part)

    expect(mounted.root.querySelector('details')?.open).toBe(true)
  })
})
