import { describe, expect, it } from 'vitest'

import { withSetup } from '@/testing/withSetup'

import { useFieldProblem } from './useFieldProblem'

function field() {
  const told: boolean[] = []
  return { told, ...withSetup(() => useFieldProblem((has) => told.push(has))) }
}

describe('the problem of a field', () => {
  it('is told when it comes and when it goes, and not in between', () => {
    const { it: problem, told, end } = field()

    for (const next of [false, true, true, false]) problem.setProblem(next)

    expect(told).toEqual([true, false])
    end()
  })

  it('goes with the field', () => {
    const { it: problem, told, end } = field()
    problem.setProblem(true)

    end()

    expect(told).toEqual([true, false])
  })
})
