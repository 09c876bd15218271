/** Texts of the charts. */
export default {
  step: 'Step {step}',
  elapsed: '{time} of training',
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
  mark: '{label}, at step {step}.',
}
