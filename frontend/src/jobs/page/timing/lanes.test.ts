import { describe, expect, it } from 'vitest'

import { countInProgress, hasLongTail, hasQueue, phaseColors, stackPhases, stairs } from './lanes'

const phase = (name: string, group: string, seconds: number[]) => ({ phase: name, group, in_step: true, seconds, total_s: 0, share: 0 })

describe('stacks of phases', () => {
  it('stand on each other, the highest column as high as the chart', () => {
    const { blocks, highest } = stackPhases([phase('gen', 'generation', [3, 6]), phase('update_actor', 'update', [1, 2])], 2)

    expect(highest).toBe(8)
    expect(blocks.filter((block) => block.column === 1)).toEqual([
      { phase: 'gen', column: 1, from: 0, to: 0.75 },
      { phase: 'update_actor', column: 1, from: 0.75, to: 1 },
    ])
    expect(blocks.find((block) => block.column === 0)?.to).toBe(0.375)
  })

  it('are none without time', () => {
    expect(stackPhases([phase('gen', 'generation', [0])], 1).blocks).toEqual([])
  })

  it('have the colour of their group, and further phases of it a paler one', () => {
    const colors = phaseColors([phase('ref', 'log_probs', []), phase('old_log_prob', 'log_probs', []), phase('x', 'unheard of', [])], ['a', 'b', 'c'], 'plain')

    expect(colors.get('ref')).toBe('c')
    expect(colors.get('old_log_prob')).toContain('c 75%')
    expect(colors.get('x')).toBe('plain')
  })
})

describe('responses in progress', () => {
  it('are counted from moment to moment', () => {
    const responses = [{ start_s: 0, end_s: 2 }, { start_s: 1, end_s: 4 }, { start_s: 2, end_s: 3 }]

    expect(countInProgress(responses)).toEqual([[0, 1], [1, 2], [2, 2], [3, 1], [4, 0]])
  })
})

describe('a long tail', () => {
  const limit = { group: 'generation', share: 0.6, seconds: 6, steps: 3, phases: ['gen'], longest_response: null, tail_share: null, queued_share: null, kv_cache_use: null }

  it('is a few responses that take much longer, and only of generation', () => {
    expect(hasLongTail(limit)).toBe(false)
    expect(hasLongTail({ ...limit, longest_response: 4.2 })).toBe(true)
    expect(hasLongTail({ ...limit, tail_share: 0.4 })).toBe(true)
    expect(hasLongTail({ ...limit, group: 'update', longest_response: 4.2 })).toBe(false)
  })
})

describe('an area of values', () => {
  it('holds each until the next one, and the last until the end', () => {
    const path = stairs([1, 3], [4, 2], 5, (seconds) => 10 * seconds, (value) => 8 - value)

    expect(path).toBe('M10.000 8.00H10.000V4.00H30.000V6.00H50.000V8.00Z')
    expect(stairs([], [], 5, (seconds) => seconds, (value) => value)).toBe('')
  })
})

describe('a queue before the engine', () => {
  const limit = { group: 'generation', share: 0.6, seconds: 6, steps: 3, phases: ['gen'], longest_response: null, tail_share: null, queued_share: 0.4, kv_cache_use: 1 }

  it('limits generation where requests wait for much of its time', () => {
    expect(hasQueue(limit)).toBe(true)
    expect(hasQueue({ ...limit, queued_share: 0.1 })).toBe(false)
    expect(hasQueue({ ...limit, queued_share: null })).toBe(false)
    expect(hasQueue({ ...limit, group: 'update' })).toBe(false)
  })
})
