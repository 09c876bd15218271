/** Texts of the matrix of models and benchmarks. */
export default {
  title: 'Models by benchmarks',
  subtitle:
    'Main scores of every model and checkpoint. All scores of a column were measured with the same settings and data.',
  target: 'Model or checkpoint',
  find: 'Find a model or checkpoint',
  mean: 'Average rank',
  meanHelp: 'Average rank over the benchmarks shown, for rows with a score in every column',
  cell: '{target}, {benchmark}, rank {rank}: ',
  others: '1 evaluation with other settings not shown | {n} evaluations with other settings not shown',
  board: 'Leaderboard of {benchmark}',
  moreColumns: '1 more benchmark is on the leaderboard. | {n} more benchmarks are on the leaderboard.',
  moreRows:
    '1 more model or checkpoint is on the leaderboard. | {n} more models and checkpoints are on the leaderboard.',
  which: 'Scores shown',
  best: 'Best score',
  newest: 'Newest score',
  noMatch: 'No matching model or checkpoint',
}
