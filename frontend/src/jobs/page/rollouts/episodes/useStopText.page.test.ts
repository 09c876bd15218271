import { describe, expect, it } from 'vitest'

import { useStopText } from './useStopText'
import { withSetup } from '@/testing/withSetup'

describe('why an episode ended', () => {
  it('names the kind of error of a workflow that failed, and unknown reasons as they are', () => {
    const { stopText, stopHelp } = withSetup(() => useStopText()).it
    expect(stopText('answered')).toBe('Answered')
    expect(stopText('workflow_error:KeyError')).toBe('Workflow failed: KeyError')
    expect(stopText('workflow_error')).toBe('Workflow failed')
    expect(stopText('new_reason')).toBe('new_reason')
    expect(stopHelp('workflow_error:KeyError')).toContain('raised an error')
    expect(stopHelp('new_reason')).toBe('')
  })
})
