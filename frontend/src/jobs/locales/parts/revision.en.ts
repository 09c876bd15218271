export default {
  version: 'Version',
  split: 'Split',
  validationSplit: 'Or a split of the training dataset',
  newest: 'newest of main',
  usual: 'train',
  unknown: 'The versions could not be read.',
  branches: 'Branches',
  tags: 'Tags',
  versions: 'Versions',
  splitRows: '{split} · {n} rows',
  at: 'version {id}, split {split}',
}
