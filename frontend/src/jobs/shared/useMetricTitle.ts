/** A metric's name for people; the key itself where the dashboard knows no better. */
import { useI18n } from 'vue-i18n'

import { metricName, metricUnit } from './metricCatalogue'

export function useMetricTitle(): (key: string) => string {
  const { t } = useI18n()
  return (key) => {
    const name = metricName(key)
    return name === null ? key : t(`jobs.metric.${name}`)
  }
}

export function useMetricUnit(): (key: string) => string | null {
  const { t } = useI18n()
  return (key) => {
    const unit = metricUnit(key)
    return unit === null ? null : t(`jobs.unit.${unit}`)
  }
}
