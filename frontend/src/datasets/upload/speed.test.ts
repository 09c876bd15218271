import { describe, expect, it } from 'vitest'

import { secondsLeft, Speedometer } from './speed'

describe('the rate of an upload', () => {
  it('is not told before enough was seen', () => {
    const speed = new Speedometer()
    expect(speed.rate).toBeNull()
    speed.note(0, 0)
    speed.note(100, 5000)
    expect(speed.rate).toBeNull()
  })

  it('is that of the last seconds, not of the whole', () => {
    const speed = new Speedometer()
    for (let second = 0; second <= 10; second++) speed.note(second * 1000, second * 1000)
    for (let second = 11; second <= 30; second++) speed.note(second * 1000, 10_000 + (second - 10) * 50_000)
    expect(speed.rate).toBeCloseTo(50_000)
  })

  it('begins anew when a file is sent again from an earlier place', () => {
    const speed = new Speedometer()
    speed.note(0, 0)
    speed.note(1000, 9000)
    speed.note(2000, 4000)
    expect(speed.rate).toBeNull()
    speed.note(3000, 6000)
    expect(speed.rate).toBeCloseTo(2000)
  })

  it('falls to nothing while nothing leaves', () => {
    const speed = new Speedometer()
    speed.note(0, 1000)
    speed.note(9000, 1000)
    expect(speed.rate).toBe(0)
    expect(secondsLeft(1000, 5000, speed.rate)).toBeNull()
  })
})

describe('the time that is left', () => {
  it('is that of the bytes that have not left', () => {
    expect(secondsLeft(250, 1000, 250)).toBe(3)
    expect(secondsLeft(1000, 1000, 250)).toBe(0)
    expect(secondsLeft(0, 1000, null)).toBeNull()
  })
})
