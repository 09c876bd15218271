/** What stands above a column: of a parameter its name, of a metric its title and which of its values. */
import { useI18n } from 'vue-i18n'

import { formatStep } from '@/format/numbers'

import { useMetricTitle } from '../shared/useMetricTitle'
import { type Column, isField, readField } from './columns'

export function useColumnTitle(): (column: Column) => string {
  const { t } = useI18n()
  const metricTitle = useMetricTitle()
  return (column) => {
    if (!isField(column)) return t(`jobs.list.column.${column}`)
    const field = readField(column)
    if ('parameter' in field) return field.parameter
    const metric = metricTitle(field.key)
    return t(`jobs.list.field.${field.end}`, { metric, step: field.step === null ? '' : formatStep(field.step) })
  }
}
