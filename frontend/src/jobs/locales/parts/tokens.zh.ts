/** Token测量值的文字。 */
export default {
  title: 'Token',
  colors: '颜色表示',
  measure: { log_prob: '对数概率', entropy: '熵', advantage: '优势', kl: '与参考的 KL', difference: '训练器 − 采样' },
  help: {
    log_prob: '更新前策略给出的对数概率，单位 nat。越深越不可能。',
    entropy: '策略下一Token分布的熵，单位 nat。越深越不确定。',
    advantage: '绿色：更新使该Token更可能；红色：更不可能。',
    kl: '由两个对数概率估计，单位 nat。越深离参考越远。',
    difference: '训练器与采样引擎的对数概率之差，理应为 0。',
  },
  point: '指向一个Token，或聚焦文本后按 ← →。',
  keys: 'Token；按左右方向键逐个移动',
  token: 'Token {number} {text}',
  part: '全部 {all} 个Token中的第 {from}–{to} 个：位于最异常的Token附近。',
  none: '没有保留Token',
  noneText: '保留少量训练回答的Token：均匀分布的最多 200 步，以及明显异常的步。',
  nearest: '第 {asked} 步没有保留Token，以下是最近的第 {step} 步。',
  notMeasured: '此任务没有测量：{measure}。',
  responsesAt: '第 {step} 步的回答',
  tokensAt: '第 {step} 步背后的Token',
}
