/** English texts of the comparison over seeds and parameters. */
export default {
  compareSeeds: {
    title: 'Which is better?',
    metric: 'Metric',
    noMetric: 'These jobs have no metric in common yet.',
    groups: 'Jobs grouped by settings',
    group: 'Jobs',
    differs: 'Different settings',
    seeds: 'Seeds',
    each: '1 seed each | {count} seeds each',
    counts: '{a} and {b} seeds',
    interval: '95% CI {low} to {high}',
    holm: '(p = {p} after Holm’s correction)',
    verdict: {
      better: '“{run}” is better than “{base}” on {metric}: {difference}, {interval}, {seeds}.',
      worse: '“{run}” is worse than “{base}” on {metric}: {difference}, {interval}, {seeds}.',
      different: '“{run}” differs from “{base}” on {metric}: {difference}, {interval}, {seeds}.',
      unclear: 'No clear difference between “{run}” and “{base}” on {metric}: {difference}, {interval}, {seeds}.',
      too_few_seeds:
        '“{run}” vs “{base}” on {metric}: {difference}, {seeds}. The difference may be chance; run 3 seeds of each.',
      no_spread:
        '“{run}” vs “{base}” on {metric}: {difference}, {seeds}. The values are the same for all seeds, so there is no interval.',
    },
    allSingle: 'Too few seeds to tell these jobs apart: differences may be chance. Run 3 seeds of each.',
    method:
      'Jobs that differ only in the seed form a group. CI: Welch’s t interval of the difference in means, one value per seed.',
    moving: 'Some of these jobs are still running: their values will change.',
    failed: 'Not counted: 1 failed run of “{run}”. | Not counted: {count} failed runs of “{run}”.',
    leftOut: '(1 left out) | ({count} left out)',
    more: 'Run more seeds',
    clone: 'Clone the best',
    cloneBest: '“{name}” has the best {metric}',
    fewRuns: 'Parameters are drawn from {count} runs on',
    fewRunsText: 'Compare more runs that differ in a setting and report the metric.',
    attempt: '{name}: attempt {number}',
    axes: 'Parameters',
  },
}
