/** How evaluations, their targets, benchmarks and metrics are called. */
import { useI18n } from 'vue-i18n'

import { shortId } from '@/datasets'
import { formatStep } from '@/format/numbers'
import { useTextOr } from '@/i18n/useTextOr'

import type { EvaluationTarget, MeasuredDataset } from '../types'

/** Metrics that are no share of anything, so that a percentage would be wrong. */
const NO_SHARE = /perplexity|bits_per_byte|ppl/

export function isShare(metric: string): boolean {
  return !NO_SHARE.test(metric)
}

export function useNames() {
  const { t } = useI18n()
  const textOr = useTextOr()

  function benchmarkName(name: string): string {
    return textOr(`evaluations.benchmark.${name}`, name)
  }

  /** "Tickets @ 1a2b3c4d"; the version only where one is meant. */
  function datasetName({ name, version, is_deleted: isDeleted }: MeasuredDataset): string {
    const called =
      name === null ? t('evaluations.dataset.unknown') : isDeleted ? t('evaluations.dataset.deleted', { name }) : name
    return version === null ? called : `${called} @ ${shortId(version)}`
  }

  /** "GSM8K", and the label beside it where it is another than the benchmark's name; of a dataset, its own name. */
  function labelName(label: string, benchmark: string, dataset?: MeasuredDataset | null): string {
    if (benchmark === 'harness') return label
    if (dataset != null)
      return /^custom(?:-[0-9]+)?$/.test(label) ? datasetName(dataset) : `${datasetName(dataset)} · ${label}`
    return label === benchmark ? benchmarkName(benchmark) : `${benchmarkName(benchmark)} · ${label}`
  }

  /** Names of the platform's own metrics; pass@k and those of other tasks stand for themselves. */
  function metricName(metric: string): string {
    return textOr(`evaluations.metric.${metric.replace(/\W/g, '_')}`, metric)
  }

  function groupKind(kind: string): string {
    return textOr(`evaluations.group.${kind}`, kind)
  }

  function targetName(target: EvaluationTarget): string {
    if (target.kind === 'model') return target.model?.name ?? target.name
    return target.job?.name == null
      ? target.name
      : t('evaluations.target.checkpoint', { job: target.job.name, step: formatStep(target.step ?? 0) })
  }

  return { benchmarkName, datasetName, labelName, metricName, groupKind, targetName }
}
