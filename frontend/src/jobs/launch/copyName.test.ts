import { describe, expect, it } from 'vitest'

import { copyOf } from './copyName'

describe('the name of a copy', () => {
  it.each([
    ['run', 'run', 1],
    ['run (copy)', 'run', 2],
    ['run (copy 2)', 'run', 3],
    ['run (copy) (copy)', 'run', 2],
    ['run（副本）', 'run', 2],
    ['run (copy)（副本）', 'run', 2],
    ['(copy)', '(copy)', 1],
  ])('%s: copy of %s, number %d', (name, base, number) => {
    expect(copyOf(name)).toEqual({ name: base, number })
  })
})
