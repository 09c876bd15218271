/** Texts of how scores have moved. */
export default {
  overSteps: 'Scores by step',
  overVersions: 'Scores by version',
  benchmark: 'Benchmark and metric',
  list: 'All evaluations',
  measurement: 'Evaluation',
  score: 'Score',
  interval: '95% CI',
  when: 'Date',
  empty: 'No scores yet.',
  alike: 'settings {letter}',
  notAlike:
    'Evaluated with different settings (data, prompts, few-shot examples or decoding). Shown as separate curves because the scores aren’t comparable.',
  step: 'step {step}',
  more: 'Show all {n} evaluations',
}
