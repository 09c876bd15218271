import { describe, expect, it } from 'vitest'

import { safeReturnPath } from './returnPath'

describe('the page after a login', () => {
  it('is the one that was asked for, with its query', () => {
    expect(safeReturnPath('/jobs/job_abc?tab=logs#end')).toBe('/jobs/job_abc?tab=logs#end')
  })

  it.each([
    'https://elsewhere.example/',
    '//elsewhere.example/x',
    '/\\elsewhere.example',
    'javascript:alert(1)',
    '',
    null,
    ['/jobs'],
  ])('is the overview for %j', (value) => {
    expect(safeReturnPath(value)).toBe('/')
  })

  it('is never the login page itself', () => {
    expect(safeReturnPath('/login?code=used')).toBe('/')
  })
})
