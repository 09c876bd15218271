/** Texts of how scores have moved. */
export default {
  overSteps: 'Scores over the steps',
  overVersions: 'Scores over the versions',
  benchmark: 'Benchmark and metric',
  list: 'Measurements',
  measurement: 'Measurement',
  score: 'Score',
  interval: '95 % interval',
  when: 'When',
  empty: 'Not measured on any benchmark yet.',
  alike: 'settings {letter}',
  notAlike: 'Measured with different settings (data, prompts, examples or decoding): curves are drawn apart, because their scores cannot be compared.',
  step: 'step {step}',
  more: 'Show all {n} measurements',
}
