/** A metric's name for people; the key itself where the dashboard knows no better. */
import { useI18n } from 'vue-i18n'

import { useNames } from '@/evaluations'

import { scoreOf } from '../page/evaluating/scores'
import { agentMetric, placesOf } from './agentMetrics'
import { metricName, metricUnit } from './metricCatalogue'

/** `labels` are those of the benchmarks that the job's checkpoints are measured on. */
export function useMetricTitle(labels: () => readonly string[] = () => []): (key: string) => string {
  const { t } = useI18n()
  const names = useNames()
  return (key) => {
    const score = scoreOf(key, labels())
    if (score !== null) return `${names.benchmarkName(score.label)} · ${names.metricName(score.metric)}`
    const ofAgent = agentMetric(key)
    if (ofAgent !== null) return t(`jobs.agentMetric.${ofAgent.name}.title`, { k: placesOf(key) })
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

/** A sentence on what a metric measures; undefined where its name says it all. */
export function useMetricHelp(): (key: string) => string | undefined {
  const { t } = useI18n()
  return (key) => {
    const ofAgent = agentMetric(key)
    return ofAgent === null ? undefined : t(`jobs.agentMetric.${ofAgent.name}.help`)
  }
}
