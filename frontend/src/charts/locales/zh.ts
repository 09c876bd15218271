/** 图表的文字。 */
export default {
  step: '第 {step} 步',
  elapsed: '训练 {time}',
  tokens: '{count} 个 Token',
  picture: '将“{title}”保存为图片',
  log: '对数',
  logHelp: '纵轴取对数',
  resetZoom: '重置缩放',
  noPoints: '暂无数据',
  count: '数量',
  broken: '{count} 个值不是数字（▲）',
  belowZero: '{count} 个 ≤ 0 的值未显示',
  binSummary: '{bin}：{count}',
  summaryEmpty: '{run}：暂无数据。',
  summary:
    '{run}：第 {first} 至 {end} 步共 {count} 个值；最新 {last}，最低 {lowest}（第 {lowestStep} 步），最高 {highest}（第 {highestStep} 步）。',
  leftOut: '并非所有对象都测过，因此未画出：{names}',
  radarFew: '雷达图至少需要三个所有对象都测过的基准。',
  radarSummary: '{run}：{scores}。',
  score: '{name} {value}',
  historySummary: '{run}：{count} 次测量；首次 {first}（{start}），最新 {last}（{end}）。',
  mark: '{label}，第 {step} 步。',
}
