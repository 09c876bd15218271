import { describe, expect, it } from 'vitest'

import { findPlace } from './places'

describe('the place of an address', () => {
  it.each([
    ['/', '/'],
    ['/jobs', '/jobs'],
    ['/jobs/job_aaaaaaaaaaaa', '/jobs'],
    ['/jobs/queue', '/jobs/queue'],
    ['/job-pipelines/new', '/job-pipelines'],
    ['/evaluations/matrix', '/evaluations'],
    ['/evaluations/leaderboard', '/evaluations/leaderboard'],
    ['/no/such/page', null],
  ])('%s is %s', (address, place) => {
    expect(findPlace(address)).toBe(place)
  })
})
