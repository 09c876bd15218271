/** The main score of each benchmark of an evaluation, as a list shows it. */
import type { Evaluation, Score } from '../types'
import { useNames } from './names'
import { useScore } from './useScore'

export interface Headline {
  label: string
  name: string
  metric: string
  value: string
  /** The 95 % interval; null where none was found. */
  range: string | null
  score: Score
}

export function useHeadlines() {
  const { labelName, metricName } = useNames()
  const { write, interval } = useScore()

  return function headlinesOf({ results, datasets }: Pick<Evaluation, 'results' | 'datasets'>): Headline[] {
    return (results ?? []).flatMap(({ label, benchmark, headline, scores }) => {
      const score = scores.find(({ metric }) => metric === headline) ?? scores[0]
      if (score === undefined) return []
      return [
        {
          label,
          name: labelName(label, benchmark, datasets[label]),
          metric: metricName(score.metric),
          value: write(score.metric, score.value),
          range: interval(score),
          score,
        },
      ]
    })
  }
}
