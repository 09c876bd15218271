/** How fast bytes leave, over the last few seconds. */

const WINDOW_MS = 6000
/** Less than this tells nothing yet. */
const LEAST_MS = 500

export class Speedometer {
  private samples: { at: number; bytes: number }[] = []

  /** So many bytes have left by then; a smaller number than before begins anew. */
  note(at: number, bytes: number): void {
    const last = this.samples.at(-1)
    if (last !== undefined && bytes < last.bytes) this.samples = []
    this.samples.push({ at, bytes })
    // One sample older than the window stays as its beginning.
    while ((this.samples[1]?.at ?? at) < at - WINDOW_MS) this.samples.shift()
  }

  /** Forgets what was before a break. */
  reset(): void {
    this.samples = []
  }

  /** Bytes a second; null before enough was seen. */
  get rate(): number | null {
    const first = this.samples[0]
    const last = this.samples.at(-1)
    if (first === undefined || last === undefined || last.at - first.at < LEAST_MS) return null
    return ((last.bytes - first.bytes) / (last.at - first.at)) * 1000
  }
}

/** Seconds until all is sent; null where that cannot be told. */
export function secondsLeft(sent: number, size: number, rate: number | null): number | null {
  return rate === null || rate <= 0 ? null : Math.max(0, size - sent) / rate
}
