import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'

import { openEventStream, pauseMs, type StreamEvent, type StreamState } from './eventStream'

class FakeSource extends EventTarget {
  static all: FakeSource[] = []
  onopen: (() => void) | null = null
  onerror: (() => void) | null = null
  isClosed = false

  constructor(readonly url: string) {
    super()
    FakeSource.all.push(this)
  }

  close(): void {
    this.isClosed = true
  }

  send(kind: string, id: number, data: unknown): void {
    this.dispatchEvent(new MessageEvent(kind, { data: JSON.stringify(data), lastEventId: String(id) }))
  }
}

function latest(): FakeSource {
  const source = FakeSource.all.at(-1)
  if (source === undefined) throw new Error('no connection was made')
  return source
}

function listen(after = 0) {
  const events: StreamEvent[] = []
  const states: StreamState[] = []
  const stream = openEventStream({
    jobId: 'job_a',
    after,
    onEvent: (event) => events.push(event),
    onState: (state) => states.push(state),
    open: (url) => new FakeSource(url) as unknown as EventSource,
  })
  return { events, states, stream }
}

describe('the event stream of a job', () => {
  beforeEach(() => {
    vi.useFakeTimers()
    FakeSource.all = []
  })

  afterEach(() => {
    vi.useRealTimers()
  })

  it('starts behind the position that the page has read', () => {
    listen(41)

    expect(latest().url).toBe('/api/v1/jobs/job_a/events?after=41')
  })

  it('delivers an event once, even if it comes twice', () => {
    const { events } = listen()

    latest().send('metrics', 1, { step: 1, values: { loss: 2 }, non_finite: {} })
    latest().send('metrics', 1, { step: 1, values: { loss: 2 }, non_finite: {} })

    expect(events).toHaveLength(1)
    expect(events[0]).toMatchObject({ kind: 'metrics', id: 1, data: { step: 1 } })
  })

  it('comes back after a broken connection behind the last event it saw', () => {
    const { states } = listen()
    latest().onopen?.()
    latest().send('progress', 7, { phase: null, step: 1, total_steps: 2, eta_s: null })

    latest().onerror?.()
    vi.advanceTimersByTime(600)

    expect(FakeSource.all).toHaveLength(2)
    expect(FakeSource.all[0]?.isClosed).toBe(true)
    expect(latest().url).toContain('after=7')
    expect(states).toEqual(['connecting', 'live', 'waiting'])
  })

  it('waits longer with every failure in a row', () => {
    listen()

    const pauses: number[] = []
    for (let round = 0; round < 8; round++) {
      latest().onerror?.()
      const before = Date.now()
      const known = FakeSource.all.length
      while (FakeSource.all.length === known) vi.advanceTimersByTime(50)
      pauses.push(Date.now() - before)
    }

    expect(pauses[0]).toBeLessThanOrEqual(550)
    expect(pauses[3]).toBeGreaterThan(2500)
    expect(Math.max(...pauses)).toBeLessThanOrEqual(15_050)
  })

  it('does not come back after it was closed', () => {
    const { stream, states } = listen()

    latest().onerror?.()
    stream.close()
    vi.advanceTimersByTime(60_000)

    expect(FakeSource.all).toHaveLength(1)
    expect(states.at(-1)).toBe('closed')
  })

  it('follows the server where it resets the position', () => {
    const { events } = listen(900)

    latest().send('reset', 5, { at: '2026-01-01T00:00:00Z' })
    latest().send('metrics', 6, { step: 1, values: {}, non_finite: {} })

    expect(events.map((event) => event.kind)).toEqual(['reset', 'metrics'])
  })

  it('tries at once when asked to', () => {
    const { stream } = listen()
    latest().onerror?.()

    stream.retryNow()

    expect(FakeSource.all).toHaveLength(2)
  })
})

describe('the pause between tries', () => {
  it('doubles up to fifteen seconds', () => {
    expect([1, 2, 3, 9].map((failures) => pauseMs(failures, 1))).toEqual([500, 1000, 2000, 15_000])
  })
})
