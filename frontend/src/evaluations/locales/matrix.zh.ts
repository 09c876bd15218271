/** 模型与基准矩阵的文字。 */
export default {
  title: '模型 × 基准',
  subtitle: '每个模型与检查点的主要分数。同一列的分数都在相同的设置与数据上测得。',
  target: '模型或检查点',
  find: '查找模型或检查点',
  mean: '平均名次',
  meanHelp: '在所示各基准上的平均名次；只计每列都有分数的行',
  cell: '{target}，{benchmark}，第 {rank} 名：',
  others: '另有 {n} 次评测的设置不同，未列出',
  board: '{benchmark} 的排行榜',
  moreColumns: '另有 {n} 个基准，见排行榜。',
  moreRows: '另有 {n} 个模型或检查点，见排行榜。',
  which: '显示的分数',
  best: '最好成绩',
  newest: '最新成绩',
  noMatch: '没有匹配的模型或检查点',
}
