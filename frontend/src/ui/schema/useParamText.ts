/** What a form says of a parameter: its unit, its bounds, and a value in a line. */
import { useI18n } from 'vue-i18n'

import { useTextOr } from '@/i18n/useTextOr'

import type { FormHints, Param } from './schema'
import { unitText } from './units'

export function useParamText() {
  const { t } = useI18n()
  const textOr = useTextOr()

  function unitOf(param: Param): string | null {
    return param.unit === null ? null : textOr(unitText(param.unit), param.unit)
  }

  function rangeText(param: Param): string {
    if (param.kind !== 'integer' && param.kind !== 'number') return ''
    const { minimum, maximum, above } = param
    if (above !== null)
      return maximum === null ? t('form.above', { low: above }) : t('form.aboveTo', { low: above, high: maximum })
    if (minimum !== null && maximum !== null) return t('form.between', { low: minimum, high: maximum })
    if (minimum !== null) return t('form.atLeast', { low: minimum })
    return maximum === null ? '' : t('form.atMost', { high: maximum })
  }

  /** A value in a line, for "default: …". */
  function valueText(param: Param, value: unknown, { choiceText }: FormHints): string {
    const choice = (one: string): string => choiceText?.(param, one) ?? one
    if (value === null || value === undefined || value === '')
      return t(param.isAutomatic ? 'form.automatic' : 'form.empty')
    if (typeof value === 'boolean') return value ? t('value.yes') : t('value.no')
    if (Array.isArray(value))
      return value.length === 0 ? t('form.empty') : value.map((one) => choice(String(one))).join(', ')
    if (typeof value === 'object') return JSON.stringify(value)
    return param.kind === 'choice' ? choice(String(value)) : String(value)
  }

  return { unitOf, rangeText, valueText }
}
