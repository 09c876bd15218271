/** A job's server-sent events: resumed where they broke off, each delivered once and in order. */
import type { StreamEvents } from '../types'

/**
 * connecting: the first connection is being made; live: events flow; waiting: the connection was lost and is tried
 * again after a pause; closed: nobody listens any more.
 */
export type StreamState = 'connecting' | 'live' | 'waiting' | 'closed'

export type StreamEvent = {
  [Kind in keyof StreamEvents]: { kind: Kind; id: number; data: StreamEvents[Kind] }
}[keyof StreamEvents]

const KINDS = [
  'state',
  'progress',
  'metrics',
  'logs',
  'checkpoint',
  'rollouts',
  'manifest',
  'alarm',
  'reset',
] as const satisfies readonly (keyof StreamEvents)[]

const FIRST_PAUSE_MS = 500
const LONGEST_PAUSE_MS = 15_000
/** A connection that lived this long counts as good: the next pause starts small again. */
const GOOD_AFTER_MS = 5_000

export interface EventStreamOptions {
  jobId: string
  /** Position behind which events are wanted. */
  after: number
  onEvent: (event: StreamEvent) => void
  onState: (state: StreamState) => void
  /** For tests. */
  open?: (url: string) => EventSource
}

export interface EventStream {
  close: () => void
  /** Tries again now instead of after the pause. */
  retryNow: () => void
}

/** Pause before try number `failures`; randomness keeps many pages from coming back at the same moment. */
export function pauseMs(failures: number, random = Math.random()): number {
  const longest = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.max(0, failures - 1))
  return longest * (0.75 + 0.25 * random)
}

export function openEventStream(options: EventStreamOptions): EventStream {
  const open = options.open ?? ((url: string) => new EventSource(url))
  let position = options.after
  let failures = 0
  let openedAt = 0
  let isClosed = false
  let source: EventSource | null = null
  let timer: ReturnType<typeof setTimeout> | undefined

  function deliver(kind: keyof StreamEvents, message: MessageEvent<string>): void {
    const id = Number(message.lastEventId)
    // A reset may move the position back: the stream's numbering is the server's.
    if (kind !== 'reset' && Number.isFinite(id) && message.lastEventId !== '') {
      if (id <= position) return
      position = id
    } else if (kind === 'reset' && message.lastEventId !== '') {
      position = id
    }
    options.onEvent({ kind, id: position, data: JSON.parse(message.data) } as StreamEvent)
  }

  function connect(): void {
    clearTimeout(timer)
    if (isClosed) return
    const mine = open(`/api/v1/jobs/${encodeURIComponent(options.jobId)}/events?after=${position}`)
    source = mine
    mine.onopen = () => {
      openedAt = Date.now()
      options.onState('live')
    }
    // The browser would reconnect by itself, but at a fixed pace and never after an HTTP error.
    mine.onerror = () => {
      if (source !== mine || isClosed) return
      mine.close()
      source = null
      failures = openedAt > 0 && Date.now() - openedAt > GOOD_AFTER_MS ? 1 : failures + 1
      openedAt = 0
      options.onState('waiting')
      timer = setTimeout(connect, pauseMs(failures))
    }
    for (const kind of KINDS) {
      mine.addEventListener(kind, (message: MessageEvent<string>) => {
        if (source === mine) deliver(kind, message)
      })
    }
  }

  function retryNow(): void {
    if (source === null && !isClosed) connect()
  }

  window.addEventListener('online', retryNow)
  options.onState('connecting')
  connect()

  return {
    retryNow,
    close() {
      isClosed = true
      clearTimeout(timer)
      source?.close()
      source = null
      window.removeEventListener('online', retryNow)
      options.onState('closed')
    },
  }
}
