/** 指标同时发送到 Weights & Biases 的文字。 */
export default {
  reporting: {
    title: 'Weights & Biases',
    off: '关闭',
    about: '同时把指标发送到 W&B。恢复的任务会接着写入同一个 W&B 运行；若无法连接 W&B，训练不受影响。',
    project: 'W&B 项目',
    entity: '团队或用户',
    entityHelp: '默认：API 密钥所属的账户。',
    name: '运行名称',
    nameHelp: '默认：任务名称。在超参数扫描中：各次运行所属的组。',
    tags: 'W&B 标签',
    sentTo: 'Weights & Biases：',
    step: '已发送到第 {step} 步',
    problem: '无法发送指标：{problem}',
  },
}
