/** 选择训练方案的文字。 */
export default {
  title: '选择训练方案',
  change: '更换方案',
  search: '查找方案',
  none: '没有符合条件的方案。',
  suits: '适合您的数据',
  suitsHelp: '常用于此类数据：{formats}。',
  wants: '使用 {formats}',
  paper: '论文（{year}）',
  experimental: '实验性',
  experimentalHelp: '引擎将此训练器标记为实验性：下一版本中可能更改或移除。',
  family: { supervised: '监督学习', rl: '强化学习', preference: '偏好学习', agent: '智能体' },
  familyHelp: {
    supervised: '模型学习写出数据中的内容。',
    rl: '模型作答，奖励函数打分，更好的回答变得更可能出现。',
    preference: '模型学习两个回答中人们更喜欢哪一个，或回答得到了怎样的评价。',
    agent: '模型在多轮中行动、调用工具，并从整个回合的结果中学习。',
  },
}
