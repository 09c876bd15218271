import { describe, expect, it } from 'vitest'

import { mount } from '@/testing/withSetup'

import { emptyDraft, withChanges } from '../launch/draft'
import FailurePanel from './FailurePanel.vue'

const CHANGE = {
  parameter: 'micro_batch_size',
  title: { en: 'Micro-batch size', zh: '微批大小' },
  current: 8,
  suggested: 4,
}

function panel(changes: object[], onFix: () => void = () => undefined) {
  const failure = {
    reason: 'The GPU ran out of memory.',
    cause: 'cuda_out_of_memory',
    exit_code: 1,
    hint: null,
    changes,
    resume_helps: false,
    last_lines: [],
  }
  return mount(FailurePanel, { job: { state: 'failed', failure }, onFix })
}

describe('a failure with a known change', () => {
  it('shows the change and leads to a copy of the job with it', () => {
    let count = 0
    const { root, end } = panel([CHANGE], () => (count += 1))
    root.querySelector<HTMLButtonElement>('[data-test=fix] button')?.click()

    expect(root.querySelector('[data-test=fix]')?.textContent).toContain('micro_batch_size: 8 → 4')
    expect(count).toBe(1)
    end()
  })

  it('offers nothing where no change is known', () => {
    const { root, end } = panel([])

    expect(root.querySelector('[data-test=fix]')).toBeNull()
    end()
  })

  it('puts the change beside what the job had set', () => {
    expect(withChanges({ ...emptyDraft(), params: { lr: 1, micro_batch_size: 8 } }, [CHANGE]).params).toEqual({
      lr: 1,
      micro_batch_size: 4,
    })
  })
})
