/** 分数变化的文字。 */
export default {
  overSteps: '分数随步数的变化',
  overVersions: '分数随版本的变化',
  benchmark: '基准与指标',
  list: '各次评测',
  measurement: '评测',
  score: '分数',
  interval: '95% 区间',
  when: '时间',
  empty: '还没有在任何基准上测过。',
  alike: '条件 {letter}',
  notAlike: '评测条件不同（数据、提示词、示例或解码方式），分数不可直接比较，因此分开画出。',
  step: '第 {step} 步',
  more: '显示全部 {n} 次评测',
}
