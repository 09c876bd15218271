/** Numbers, sizes, durations and times as a reader of the current language writes them. */
import { computed } from 'vue'
import { useI18n } from 'vue-i18n'

import { formatNumber } from './numbers'
import { splitBytes, splitDuration } from './units'

type Moment = string | Date

function toDate(value: Moment): Date {
  return value instanceof Date ? value : new Date(value)
}

const RELATIVE_STEPS: readonly [Intl.RelativeTimeFormatUnit, number][] = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
]

export function useFormat() {
  const { t, locale } = useI18n()
  const tag = computed(() => (locale.value === 'zh' ? 'zh-CN' : 'en-GB'))

  const integerFormat = computed(() => new Intl.NumberFormat(tag.value, { maximumFractionDigits: 0 }))
  const dateTimeFormat = computed(
    () => new Intl.DateTimeFormat(tag.value, { dateStyle: 'medium', timeStyle: 'medium', hour12: false }),
  )
  const timeFormat = computed(() => new Intl.DateTimeFormat(tag.value, { timeStyle: 'medium', hour12: false }))
  const relativeFormat = computed(() => new Intl.RelativeTimeFormat(tag.value, { numeric: 'auto' }))

  function integer(value: number): string {
    return integerFormat.value.format(value)
  }

  /**
   * Significant digits for measurements; very small and very large values in exponent form. What stands before the
   * decimal sign is never rounded away: counts come through here too.
   */
  function number(value: number, digits = 4): string {
    if (!Number.isFinite(value)) return Number.isNaN(value) ? 'NaN' : value > 0 ? '∞' : '−∞'
    const size = Math.abs(value)
    if (size !== 0 && (size < 1e-4 || size >= 1e9)) return formatNumber(value, 3)
    if (size >= 10 ** (Math.max(digits, 1) - 1)) return integer(value)
    return new Intl.NumberFormat(tag.value, { maximumSignificantDigits: Math.max(digits, 1) }).format(value)
  }

  function percent(share: number, digits = 0): string {
    return new Intl.NumberFormat(tag.value, {
      style: 'percent',
      minimumFractionDigits: digits,
      maximumFractionDigits: digits,
    }).format(share)
  }

  /** An amount of money; less than a cent keeps two digits that say something. */
  function money(amount: number, currency: string): string {
    const isTiny = amount !== 0 && Math.abs(amount) < 0.01
    return new Intl.NumberFormat(tag.value, {
      style: 'currency',
      currency,
      currencyDisplay: 'narrowSymbol',
      ...(isTiny ? { maximumSignificantDigits: 2 } : {}),
    }).format(amount)
  }

  function bytes(size: number): string {
    const { amount, unit } = splitBytes(size)
    const digits = unit === 'B' || amount >= 100 ? 0 : 1
    return `${new Intl.NumberFormat(tag.value, { maximumFractionDigits: digits }).format(amount)} ${unit}`
  }

  /** At most two units: "2 h 5 min", "45 s". */
  function duration(seconds: number): string {
    return splitDuration(seconds)
      .map(({ amount, unit }) => t(`duration.${unit}`, { n: integer(amount) }))
      .join(' ')
  }

  function dateTime(value: Moment): string {
    return dateTimeFormat.value.format(toDate(value))
  }

  function time(value: Moment): string {
    return timeFormat.value.format(toDate(value))
  }

  /** "3 minutes ago"; seconds are rounded away below a minute. */
  function relative(value: Moment, now: Date = new Date()): string {
    const seconds = (toDate(value).getTime() - now.getTime()) / 1000
    for (const [unit, length] of RELATIVE_STEPS) {
      if (Math.abs(seconds) >= length) return relativeFormat.value.format(Math.trunc(seconds / length), unit)
    }
    if (Math.abs(seconds) < 5) return t('duration.now')
    return relativeFormat.value.format(Math.trunc(seconds), 'second')
  }

  return { integer, number, percent, money, bytes, duration, dateTime, time, relative }
}
