import { nextTick, reactive } from 'vue'
import { describe, expect, it } from 'vitest'

import { mount } from '@/testing/withSetup'
import { groupIssues } from '@/ui/form/issues'

import { emptyReport } from './draft'
import ReportSection from './ReportSection.vue'

describe('the section of Weights & Biases', () => {
  it('is folded until a project is named, and then asks for the rest', async () => {
    const draft = reactive(emptyReport())
    const { root, end } = mount(ReportSection, { draft, issues: groupIssues([], []) })
    expect(root.querySelector('details')?.open).toBe(false)
    expect(root.querySelectorAll('input')).toHaveLength(1)

    draft.project = 'sums'
    await nextTick()

    expect(root.querySelector('details')?.open).toBe(true)
    expect(root.querySelector('summary')?.textContent).toContain('sums')
    expect(root.querySelectorAll('input').length).toBeGreaterThan(2)
    end()
  })

  it('says what the platform lacks', () => {
    const issue = {
      code: 'wandb_not_set_up',
      field: 'report_to.wandb',
      message: 'Weights & Biases isn’t set up.',
      suggestion: null,
    }
    const { root, end } = mount(ReportSection, {
      draft: { ...emptyReport(), project: 'sums' },
      issues: groupIssues([issue], []),
    })
    expect(root.textContent).toContain('isn’t set up')
    end()
  })
})
