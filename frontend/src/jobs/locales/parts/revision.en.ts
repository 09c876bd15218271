export default {
  version: 'Version',
  split: 'Split',
  validationSplit: 'Or use a split of the training dataset',
  newest: 'latest on main',
  usual: 'train',
  unknown: 'Couldn’t load versions.',
  branches: 'Branches',
  tags: 'Tags',
  versions: 'Versions',
  splitRows: '{split} · {n} row | {split} · {n} rows',
  at: 'version {id}, split {split}',
}
