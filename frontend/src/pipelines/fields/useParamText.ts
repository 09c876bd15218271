/** Words for parameters: ranges, units and the values of choices. */
import { useI18n } from 'vue-i18n'

import { useTextOr } from '@/i18n/useTextOr'

import type { Param } from './schema'

export function useParamText() {
  const { t } = useI18n()
  const textOr = useTextOr()

  /** A choice of a parameter; the same word may mean different things in two of them. */
  function choiceText(param: string, value: string): string {
    return textOr(`pipelines.choice.${param}.${value}`, textOr(`pipelines.choice.any.${value}`, value))
  }

  function unitText(unit: string): string {
    return textOr(`pipelines.unit.${unit}`, unit)
  }

  function rangeText(param: Param): string {
    if (param.kind !== 'integer' && param.kind !== 'number') return ''
    const { minimum, maximum, above } = param
    if (above !== null)
      return maximum === null
        ? t('jobs.launch.above', { low: above })
        : t('jobs.launch.aboveTo', { low: above, high: maximum })
    if (minimum !== null && maximum !== null) return t('jobs.launch.between', { low: minimum, high: maximum })
    if (minimum !== null) return t('jobs.launch.atLeast', { low: minimum })
    return maximum === null ? '' : t('jobs.launch.atMost', { high: maximum })
  }

  /** A value in a line, for "default: …". */
  function valueText(param: Param, value: unknown): string {
    if (value === null || value === undefined || value === '') return t('jobs.launch.empty')
    if (typeof value === 'boolean') return value ? t('value.yes') : t('value.no')
    if (Array.isArray(value))
      return value.length === 0
        ? t('jobs.launch.empty')
        : value.map((one) => choiceText(param.name, String(one))).join(', ')
    if (typeof value === 'object') return JSON.stringify(value)
    return param.kind === 'choice' ? choiceText(param.name, String(value)) : String(value)
  }

  return { choiceText, unitText, rangeText, valueText }
}
