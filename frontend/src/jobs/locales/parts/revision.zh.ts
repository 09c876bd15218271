export default {
  version: '版本',
  split: '划分',
  validationSplit: '或训练数据集的另一个划分',
  newest: 'main 的最新版本',
  usual: 'train',
  unknown: '无法读取版本。',
  branches: '分支',
  tags: '标签',
  versions: '版本',
  splitRows: '{split} · {n} 行',
  at: '版本 {id}，划分 {split}',
}
