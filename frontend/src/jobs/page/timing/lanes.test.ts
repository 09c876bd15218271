import { describe, expect, it } from 'vitest'

import {
  addUpLane,
  countInProgress,
  groupByNode,
  hasLongTail,
  hasQueue,
  laneColors,
  phaseColors,
  splitName,
  stackPhases,
  stairs,
} from './lanes'

const phase = (name: string, group: string, seconds: number[]) => ({
  phase: name,
  group,
  in_step: true,
  seconds,
  total_s: 0,
  share: 0,
})

describe('stacks of phases', () => {
  it('stand on each other, the highest column as high as the chart', () => {
    const { blocks, highest } = stackPhases(
      [phase('gen', 'generation', [3, 6]), phase('update_actor', 'update', [1, 2])],
      2,
    )

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
    const colors = phaseColors(
      [phase('ref', 'log_probs', []), phase('old_log_prob', 'log_probs', []), phase('x', 'unheard of', [])],
      ['a', 'b', 'c'],
      'plain',
    )

    expect(colors.get('ref')).toBe('c')
    expect(colors.get('old_log_prob')).toContain('c 75%')
    expect(colors.get('x')).toBe('plain')
  })
})

describe('responses in progress', () => {
  it('are counted from moment to moment', () => {
    const responses = [
      { start_s: 0, end_s: 2 },
      { start_s: 1, end_s: 4 },
      { start_s: 2, end_s: 3 },
    ]

    expect(countInProgress(responses)).toEqual([
      [0, 1],
      [1, 2],
      [2, 2],
      [3, 1],
      [4, 0],
    ])
  })
})

describe('a long tail', () => {
  const limit = {
    group: 'generation',
    share: 0.6,
    seconds: 6,
    steps: 3,
    phases: ['gen'],
    longest_response: null,
    tail_share: null,
    queued_share: null,
    kv_cache_use: null,
    workers_busy: null,
    engines_busy: null,
  }

  it('is a few responses that take much longer, and only of generation', () => {
    expect(hasLongTail(limit)).toBe(false)
    expect(hasLongTail({ ...limit, longest_response: 4.2 })).toBe(true)
    expect(hasLongTail({ ...limit, tail_share: 0.4 })).toBe(true)
    expect(hasLongTail({ ...limit, group: 'update', longest_response: 4.2 })).toBe(false)
  })
})

describe('an area of values', () => {
  it('holds each until the next one, and the last until the end', () => {
    const path = stairs(
      [1, 3],
      [4, 2],
      5,
      (seconds) => 10 * seconds,
      (value) => 8 - value,
    )

    expect(path).toBe('M10.000 8.00H10.000V4.00H30.000V6.00H50.000V8.00Z')
    expect(
      stairs(
        [],
        [],
        5,
        (seconds) => seconds,
        (value) => value,
      ),
    ).toBe('')
  })
})

describe('a queue before the engine', () => {
  const limit = {
    group: 'generation',
    share: 0.6,
    seconds: 6,
    steps: 3,
    phases: ['gen'],
    longest_response: null,
    tail_share: null,
    queued_share: 0.4,
    kv_cache_use: 1,
    workers_busy: null,
    engines_busy: null,
  }

  it('limits generation where requests wait for much of its time', () => {
    expect(hasQueue(limit)).toBe(true)
    expect(hasQueue({ ...limit, queued_share: 0.1 })).toBe(false)
    expect(hasQueue({ ...limit, queued_share: null })).toBe(false)
    expect(hasQueue({ ...limit, group: 'update' })).toBe(false)
  })
})

describe('lanes of processes', () => {
  const span = (phase: string, from: number, to: number) => ({ phase, start_s: from, end_s: to })

  it('are told apart by what the process does', () => {
    expect(splitName('agent_loop 12')).toEqual({ kind: 'agent_loop', number: 12 })
    expect(splitName('trainer')).toEqual({ kind: 'trainer', number: null })
  })

  it('stand together by node', () => {
    const lane = (name: string, node?: string) => ({
      name,
      spans: [],
      place: node === undefined ? null : { node, pid: 1, gpus: [] },
    })
    const grouped = groupByNode([
      lane('trainer', 'a'),
      lane('worker 0', 'a'),
      lane('worker 1', 'b'),
      lane('engine 0', 'a'),
    ])

    expect(grouped.map(({ node, lanes }) => [node, lanes.map((one) => one.name)])).toEqual([
      ['a', ['trainer', 'worker 0', 'engine 0']],
      ['b', ['worker 1']],
    ])
    expect(groupByNode([lane('rank 0'), lane('rank 1')])).toHaveLength(1)
  })

  it('leave a rest of the step, in which overlapping phases count once', () => {
    const { phases, rest } = addUpLane([span('responses', 1, 5), span('reward', 4, 6), span('reward', 8, 9)], 10)

    expect([...phases]).toEqual([
      ['responses', 4],
      ['reward', 3],
    ])
    expect(rest).toBe(4)
  })

  it('have the colours of the run’s phases, and for others those of their group', () => {
    const colors = laneColors(
      { gen: 'generation', generate: 'generation', odd: 'unheard of' },
      new Map([['gen', 'g']]),
      ['s0', 's1'],
      'plain',
    )

    expect([...colors]).toEqual([
      ['gen', 'g'],
      ['generate', 's0'],
      ['odd', 'plain'],
    ])
  })
})
