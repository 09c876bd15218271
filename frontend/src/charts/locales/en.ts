/** Texts of the charts. */
export default {
  step: 'Step {step}',
  elapsed: '{time} of training',
  tokens: '{count} tokens',
  picture: 'Save “{title}” as a picture',
  log: 'Log',
  logHelp: 'Logarithmic y axis',
  resetZoom: 'Reset zoom',
  noPoints: 'No values yet',
  count: 'Count',
  broken: 'One value is not a number (▲) | {count} values are not numbers (▲)',
  belowZero: 'One value ≤ 0 is not shown | {count} values ≤ 0 are not shown',
  binSummary: '{bin}: {count}',
  summaryEmpty: '{run}: no values yet.',
  summary:
    '{run}: {count} values from step {first} to {end}; last {last}, lowest {lowest} at step {lowestStep}, highest {highest} at step {highestStep}.',
  leftOut: 'Not on every axis, therefore left out: {names}',
  radarFew: 'A radar needs at least three benchmarks that all of them were measured on.',
  radarSummary: '{run}: {scores}.',
  score: '{name} {value}',
  historySummary: '{run}: {count} measurements; first {first} ({start}), last {last} ({end}).',
  mark: '{label}, at step {step}.',
}
