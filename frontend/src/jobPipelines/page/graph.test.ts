import { describe, expect, it } from 'vitest'

import type { Stage } from '../types'
import { edgesOf, stageOfInterest, towards } from './graph'

function stage(id: string, needs: string[], model: string | null = null): Pick<Stage, 'id' | 'needs' | 'request'> {
  return { id, needs, request: { model: { base: model === null ? 'mdl_1' : null, stage: model } } as Stage['request'] }
}

const stages = [
  stage('sft', []),
  stage('retrieval', ['sft']),
  stage('rl', ['sft'], 'sft'),
  stage('evaluation', ['rl', 'retrieval'], 'rl'),
]

describe('the graph of stages', () => {
  it('tells what a model comes from apart from what is only waited for', () => {
    expect(edgesOf(stages)).toEqual([
      { source: 'sft', target: 'retrieval', isModel: false },
      { source: 'sft', target: 'rl', isModel: true },
      { source: 'rl', target: 'evaluation', isModel: true },
      { source: 'retrieval', target: 'evaluation', isModel: false },
    ])
  })

  it.each([
    ['sft', 'ArrowRight', 'retrieval'],
    ['retrieval', 'ArrowDown', 'rl'],
    ['rl', 'ArrowUp', 'retrieval'],
    ['rl', 'ArrowRight', 'evaluation'],
    ['evaluation', 'ArrowLeft', 'retrieval'],
    ['sft', 'ArrowLeft', null],
    ['sft', 'Enter', null],
    ['gone', 'ArrowRight', null],
  ])('leads from %s with %s to %s', (from, key, expected) => {
    expect(towards(stages, from, key)).toBe(expected)
  })
})

describe('the stage that is shown unasked', () => {
  it.each([
    [['succeeded', 'failed', 'blocked'], 1],
    [['succeeded', 'running', 'waiting'], 1],
    [['skipped', 'succeeded'], 1],
    [['waiting', 'waiting'], 0],
  ] as const)('of %j is number %i', (states, expected) => {
    const all = states.map((state) => ({ state }))

    expect(stageOfInterest(all)).toBe(all[expected])
  })

  it('is none where there are no stages', () => {
    expect(stageOfInterest([])).toBeNull()
  })
})
