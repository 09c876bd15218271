/** Means over seeds, read for the groups and metrics that are drawn. */
import { computed, watch } from 'vue'

import { api, unwrap } from '@/api/client'
import { useResource } from '@/api/useResource'
import { type Stretch, withDetail } from '@/charts/detail'

import type { MeanCurve } from './curves'
import { MAX_POINTS } from './readCurves'

const REFRESH_MS = 10_000

/** Means by the ids of a group and the metric. */
export type Means = ReadonlyMap<string, MeanCurve>

export function keyOfMean(ids: readonly string[], key: string): string {
  return `${ids.join(',')} ${key}`
}

export async function readMeans(
  groups: readonly (readonly string[])[],
  keys: readonly string[],
  stretch: Stretch | null = null,
  signal?: AbortSignal,
): Promise<Means> {
  if (groups.length === 0 || keys.length === 0) return new Map()
  const query = {
    groups: groups.map((ids) => ids.join(',')),
    keys: [...keys],
    max_points: MAX_POINTS,
    from_step: stretch?.from,
    to_step: stretch?.to,
  }
  const answer = await unwrap(api.GET('/api/v1/jobs/compare/means', { params: { query }, signal }))
  return new Map(
    answer.groups.flatMap((group, index) =>
      group.series.map(({ key, steps, means, deviations, stride }): [string, MeanCurve] => [
        keyOfMean(groups[index] ?? [], key),
        { curve: { steps, values: means, width: stride > 1 ? stride : undefined }, deviations },
      ]),
    ),
  )
}

export function useMeans(
  groups: () => readonly (readonly string[])[],
  keys: () => readonly string[],
  isLive: () => boolean,
) {
  const asked = computed(() => JSON.stringify([groups(), keys()]))
  const means = useResource((signal) => readMeans(groups(), keys(), null, signal), {
    intervalMs: () => (isLive() && groups().length > 0 ? REFRESH_MS : null),
  })
  // What is drawn stays until the next answer is there.
  watch(asked, () => void means.refresh())
  return {
    means: computed((): Means => means.data.value ?? new Map()),
    error: means.error,
    refresh: () => void means.refresh(),
  }
}

/** Means with a stretch of them in detail. */
export function detailMeans(whole: Means, part: Means, stretch: Stretch): Means {
  return new Map(
    [...whole].map(([name, mean]) => {
      const detail = part.get(name)
      const own = (values: readonly number[], steps: readonly number[]) => ({ steps: [...steps], values: [...values] })
      const deviations = withDetail(
        own(mean.deviations, mean.curve.steps),
        detail && own(detail.deviations, detail.curve.steps),
        stretch,
      )
      return [name, { curve: withDetail(mean.curve, detail?.curve, stretch), deviations: deviations.values }]
    }),
  )
}
