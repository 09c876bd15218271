/** Numbers as people read them on axes, in tooltips and in tables: the only place that turns them into text. */

const SUFFIXES: readonly [number, string][] = [
  [1e12, 'T'],
  [1e9, 'G'],
  [1e6, 'M'],
  [1e3, 'k'],
]

function trimZeros(text: string): string {
  return text.includes('.') ? text.replace(/\.?0+$/, '') : text
}

/** A text with a minus sign as wide as the plus in front of other numbers, in place of a hyphen. */
function withMinus(text: string): string {
  return text.replace(/^-/, '−')
}

/** A value with about `digits` significant digits: 0.1235, −12.35, 1 235, 1.23e-5. Words for what is no number. */
export function formatNumber(value: number | null | undefined, digits = 4): string {
  if (value === null || value === undefined) return '–'
  if (Number.isNaN(value)) return 'NaN'
  if (!Number.isFinite(value)) return value > 0 ? '+∞' : '−∞'
  return value === 0 ? '0' : withMinus(writeValue(value, digits))
}

function writeValue(value: number, digits: number): string {
  const size = Math.abs(value)
  if (size < 1e-4 || size >= 1e9) return trimExponent(value.toExponential(Math.max(0, digits - 1)))
  if (size >= Math.pow(10, digits - 1)) return groupThousands(Math.round(value))
  return String(roundVisibly(value, digits))
}

/** Rounds, but not to a whole number that the value is not: a correlation of 0.99998 is not 1. */
function roundVisibly(value: number, digits: number): number {
  for (let precision = digits; precision < 8; precision++) {
    const rounded = Number(value.toPrecision(precision))
    if (!Number.isInteger(rounded) || Number.isInteger(value)) return rounded
  }
  return Number(value.toPrecision(8))
}

function trimExponent(text: string): string {
  const [mantissa = '', exponent = ''] = text.split('e')
  return `${trimZeros(mantissa)}e${exponent.replace('+', '')}`
}

function groupThousands(value: number): string {
  // A thin space: neither the English comma nor the full stop can be mistaken for a decimal sign.
  return String(value).replace(/\B(?=(\d{3})+(?!\d))/g, '\u202f')
}

/**
 * A short label for an axis: 0.002, 1.5k, 20M, 1e-5.
 *
 * Ticks lie at round numbers, so all their digits are shown: neighbours must differ, however close they are.
 */
export function formatTick(value: number): string {
  return value === 0 ? '0' : withMinus(writeTick(value))
}

function writeTick(value: number): string {
  const size = Math.abs(value)
  for (const [factor, suffix] of SUFFIXES) {
    if (size >= factor) return String(Number((value / factor).toPrecision(10))) + suffix
  }
  if (size < 1e-3) return trimExponent(value.toExponential(6))
  return String(Number(value.toPrecision(10)))
}

/** A step as an axis label: 140, 12 500, 1.25M. The ends of the axis are not round. */
export function formatStepTick(step: number): string {
  return Math.abs(step) < 1e6 ? groupThousands(Math.round(step)) : `${Number((step / 1e6).toPrecision(4))}M`
}

/** A step in a sentence: 140, 12 500; between two steps, 12 500.5. */
export function formatStep(step: number): string {
  return groupThousands(Number(step.toFixed(1)))
}

/** Seconds in a unit of elapsed time. */
export type TimeUnit = 1 | 60 | 3600

/** The unit in which a stretch of time is best counted: axes have round ticks then. */
export function timeUnit(seconds: number): TimeUnit {
  if (seconds <= 180) return 1
  return seconds <= 3 * 3600 ? 60 : 3600
}

const TIME_SUFFIXES: Record<TimeUnit, string> = { 1: 's', 60: 'm', 3600: 'h' }

/** An amount of time units as an axis label: 45s, 12m, 1.5h. */
export function formatElapsedTick(amount: number, unit: TimeUnit): string {
  return `${Number(amount.toPrecision(3))}${TIME_SUFFIXES[unit]}`
}

/**
 * Milliseconds since 1970 as an axis label, in the reader's zone: 05-31 14:05, or less on an axis of `spanMs`, whose
 * ends would bear the same label otherwise: 14:05 within a day, 14:05:30 within a quarter of an hour.
 */
export function formatMoment(time: number, spanMs = Infinity): string {
  const at = new Date(time)
  const two = (value: number) => String(value).padStart(2, '0')
  const clock = `${two(at.getHours())}:${two(at.getMinutes())}`
  if (spanMs < 900_000) return `${clock}:${two(at.getSeconds())}`
  return spanMs < 86_400_000 ? clock : `${two(at.getMonth() + 1)}-${two(at.getDate())} ${clock}`
}

/** Always so many decimals: for coordinates of drawings, and for numbers whose width must not change. */
export function formatFixed(value: number, decimals: number): string {
  return value.toFixed(decimals)
}

/** Rounded to significant digits, as a number. */
export function roundTo(value: number, digits: number): number {
  return Number(value.toPrecision(digits))
}

/** With its sign in front: +0.03, −0.5, ±0. */
export function formatSigned(value: number, digits = 3): string {
  return signOf(value) + formatNumber(Math.abs(value), digits)
}

/** A change as a percentage with its sign in front: +2.5%, −50.0%. */
export function formatSignedPercent(ratio: number): string {
  return `${signOf(ratio)}${(Math.abs(ratio) * 100).toFixed(1)}%`
}

function signOf(value: number): string {
  return value > 0 ? '+' : value < 0 ? '−' : '±'
}

/** A ratio in [0, 1] as a percentage without needless digits. */
export function formatPercent(ratio: number): string {
  const percent = ratio * 100
  return `${percent > 0 && percent < 10 ? trimZeros(percent.toFixed(1)) : String(Math.round(percent))}%`
}
