/** One job as it happens: its row, curves and log lines, kept fresh by the event stream. */
import { ref, shallowRef } from 'vue'

import { api, unwrap } from '@/api/client'
import { type ApiError, asApiError } from '@/api/errors'
import type { Curve } from '@/charts/curve'
import type { Stretch } from '@/charts/detail'

import type { Job } from '../types'
import { createCurveBook, toCurve } from './curveBook'
import { type EventStream, openEventStream, type StreamEvent, type StreamState } from './eventStream'
import { createLiveClock } from './liveClock'
import { createLogBuffer } from './logBuffer'

/** Charts are redrawn at most this often, however fast points arrive. */
const DRAW_EVERY_MS = 200
/** A slow machine redraws less often: drawing takes at most one part in so many of its time. */
const REST_PER_DRAW = 4
const LONGEST_REST_MS = 4_000
/** Places in the queue move without an event of this job. */
const QUEUE_REFRESH_MS = 5_000
/** Points a curve to begin with: about twice the pixels of a chart. */
const MAX_POINTS = 1_000

export type LiveRun = ReturnType<typeof createLiveRun>

export function createLiveRun(jobId: string) {
  const job = shallowRef<Job | null>(null)
  const error = shallowRef<ApiError | null>(null)
  const connection = ref<StreamState>('connecting')
  const book = createCurveBook()
  const log = createLogBuffer()
  const clock = createLiveClock()
  /** Grow with every change of what cannot be watched deeply without cost. */
  const curveVersion = ref(0)
  const keyVersion = ref(0)
  const logVersion = ref(0)
  /** Grow when the server has more checkpoints, rollouts or manifests than were read. */
  const checkpointVersion = ref(0)
  const rolloutVersion = ref(0)
  const manifestVersion = ref(0)

  let stream: EventStream | null = null
  let frame = 0
  let drawnAt = 0
  let restMs = DRAW_EVERY_MS
  let hasNewLines = false
  let knownKeyCount = 0
  let queueTimer: ReturnType<typeof setTimeout> | undefined
  let isClosed = false
  let readNumber = 0

  function draw(now: number): void {
    frame = 0
    if (now - drawnAt < restMs) {
      scheduleDraw()
      return
    }
    measureDraw()
    if (book.flush()) curveVersion.value += 1
    if (book.latest.size !== knownKeyCount) {
      knownKeyCount = book.latest.size
      keyVersion.value += 1
    }
    if (hasNewLines) {
      hasNewLines = false
      logVersion.value += 1
    }
  }

  /** Times from here to the frame after the charts have been painted. */
  function measureDraw(): void {
    const startedAt = performance.now()
    drawnAt = Infinity
    // The charts take their new points in this frame and paint in the next.
    requestAnimationFrame(() =>
      requestAnimationFrame(() => {
        const took = performance.now() - startedAt
        restMs = Math.min(LONGEST_REST_MS, Math.max(DRAW_EVERY_MS, took * REST_PER_DRAW))
        drawnAt = performance.now()
      }),
    )
  }

  function scheduleDraw(): void {
    if (frame === 0 && !isClosed) frame = requestAnimationFrame(draw)
  }

  async function readJob(): Promise<void> {
    const mine = ++readNumber
    clearTimeout(queueTimer)
    try {
      const answer = await unwrap(api.GET('/api/v1/jobs/{job_id}', { params: { path: { job_id: jobId } } }))
      if (mine !== readNumber || isClosed) return
      job.value = answer
      error.value = null
      if (stream === null) follow(answer.last_event_id)
      if (answer.state === 'queued') queueTimer = setTimeout(() => void readJob(), QUEUE_REFRESH_MS)
    } catch (cause) {
      if (mine !== readNumber || isClosed) return
      error.value = asApiError(cause)
    }
  }

  async function loadKeys(keys: readonly string[]): Promise<void> {
    const fresh = book.claim(keys)
    if (fresh.length === 0) return
    try {
      const answer = await unwrap(
        api.GET('/api/v1/jobs/{job_id}/metrics', {
          params: { path: { job_id: jobId }, query: { keys: fresh, max_points: MAX_POINTS, clock: true } },
        }),
      )
      clock.fill(answer.clock ?? null)
      book.fill(answer.series)
      // Keys that the server does not have yet start empty and wait for the stream.
      const found = new Set(answer.series.map((series) => series.key))
      for (const key of fresh) {
        if (!found.has(key)) {
          book.fill([
            { key, steps: [], values: [], non_finite: [], total_points: 0, is_downsampled: false, stretch_steps: 1 },
          ])
        }
      }
      book.flush()
      curveVersion.value += 1
    } catch (cause) {
      book.release(fresh)
      throw asApiError(cause)
    }
  }

  async function loadKeyNames(): Promise<void> {
    const keys = await unwrap(api.GET('/api/v1/jobs/{job_id}/metric-keys', { params: { path: { job_id: jobId } } }))
    for (const one of keys) book.note(one.key, { step: one.last_step, value: one.last_value ?? NaN })
    knownKeyCount = book.latest.size
    keyVersion.value += 1
  }

  /** Curves between two steps, in as many points as the whole has. */
  async function readPart(
    keys: readonly string[],
    { from, to }: Stretch,
    signal: AbortSignal,
  ): Promise<Map<string, Curve>> {
    const query = { keys: [...keys], max_points: MAX_POINTS, from_step: from, to_step: to }
    const path = { job_id: jobId }
    const answer = await unwrap(api.GET('/api/v1/jobs/{job_id}/metrics', { params: { path, query }, signal }))
    return new Map(answer.series.map((series) => [series.key, toCurve(series)]))
  }

  /** Another attempt runs some steps again. */
  async function readClock(): Promise<void> {
    clock.restart()
    const key = [...book.curves.keys()][0]
    if (key === undefined) return
    const query = { keys: [key], max_points: MAX_POINTS, clock: true }
    const path = { job_id: jobId }
    const answer = await unwrap(api.GET('/api/v1/jobs/{job_id}/metrics', { params: { path, query } }))
    clock.fill(answer.clock ?? null)
    curveVersion.value += 1
  }

  function fail(cause: unknown): void {
    error.value = asApiError(cause)
  }

  /** The position is gone, for instance because the database was put back: what was read may be wrong. */
  function startOver(): void {
    const keys = [...book.curves.keys()]
    book.clear()
    log.clear()
    logVersion.value += 1
    void readJob()
    clock.restart()
    void Promise.all([loadKeyNames(), loadKeys(keys)]).catch(fail)
  }

  function onEvent(event: StreamEvent): void {
    switch (event.kind) {
      case 'state':
        if (job.value !== null && job.value.attempt !== event.data.attempt) readClock().catch(fail)
        if (job.value !== null) job.value = { ...job.value, state: event.data.state, attempt: event.data.attempt }
        void readJob()
        break
      case 'progress':
        if (job.value !== null) {
          const { eta_s, phase, step, total_steps } = event.data
          const fraction = total_steps === null || total_steps === 0 ? null : Math.min(1, step / total_steps)
          job.value = { ...job.value, eta_s, progress: { phase, step, total_steps, fraction } }
        }
        break
      case 'metrics':
        book.append(event.data)
        clock.append(event.data)
        scheduleDraw()
        break
      case 'logs':
        if (log.add(event.data.lines)) hasNewLines = true
        scheduleDraw()
        break
      case 'checkpoint':
        checkpointVersion.value += 1
        break
      case 'rollouts':
        rolloutVersion.value += 1
        break
      case 'alarm':
        // One alarm may clear or replace another: the job's own list is what counts.
        void readJob()
        break
      case 'manifest':
        manifestVersion.value += 1
        break
      case 'reset':
        startOver()
        break
    }
  }

  function follow(after: number): void {
    stream = openEventStream({
      jobId,
      after,
      onEvent,
      onState: (state) => {
        // While the connection was away, the state may have changed without an event for this page.
        if (state === 'live' && connection.value === 'waiting') void readJob()
        connection.value = state
      },
    })
  }

  function noteLines(): void {
    logVersion.value += 1
  }

  function close(): void {
    isClosed = true
    clearTimeout(queueTimer)
    if (frame !== 0) cancelAnimationFrame(frame)
    stream?.close()
    stream = null
  }

  void readJob()

  return {
    jobId,
    job,
    error,
    connection,
    curves: book.curves,
    latest: book.latest,
    clock,
    log,
    curveVersion,
    keyVersion,
    logVersion,
    checkpointVersion,
    rolloutVersion,
    manifestVersion,
    readJob,
    loadKeys,
    loadKeyNames,
    readPart,
    noteLines,
    retryNow: () => stream?.retryNow(),
    close,
  }
}
