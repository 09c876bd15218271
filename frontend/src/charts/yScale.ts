/** How a reader has set a chart's y axis, and its form in an address: by metric, since each has values of its own. */

/** Ends as typed; an empty one is left to the values. */
export interface YScale {
  isLog: boolean
  low: string
  high: string
}

export const USUAL_SCALE: YScale = { isLog: false, low: '', high: '' }
/** Longer than any number that a person types. */
const MAX_END = 24

function readEnd(text: string): string {
  return text.replaceAll('%2C', ',').slice(0, MAX_END)
}

function parseScale(text: string): [key: string, scale: YScale] | null {
  // The key stands last, because it alone may hold a comma.
  const [, log, low, high, key] = /^(log)?,([^,]*),([^,]*),(.+)$/s.exec(text) ?? []
  if (low === undefined || high === undefined || key === undefined) return null
  return [key, { isLog: log !== undefined, low: readEnd(low), high: readEnd(high) }]
}

/** The scales that an address holds, by the key of their metric; what cannot be read is left out. */
export function readScales(texts: readonly unknown[]): Map<string, YScale> {
  return new Map(
    texts.flatMap((text) => {
      const found = typeof text === 'string' ? parseScale(text) : null
      return found === null ? [] : [found]
    }),
  )
}

/** The shortest form: nothing of charts that are drawn as usual. */
export function writeScales(scales: ReadonlyMap<string, YScale>): string[] {
  return [...scales]
    .filter(([, { isLog, low, high }]) => isLog || low.trim() !== '' || high.trim() !== '')
    .map(([key, { isLog, low, high }]) =>
      [isLog ? 'log' : '', ...[low, high].map((end) => end.trim().replaceAll(',', '%2C')), key].join(','),
    )
}
