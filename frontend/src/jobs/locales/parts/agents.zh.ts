/** 智能体指标的文字。 */
export default {
  agentMetric: {
    accuracy: { title: '准确率', help: '正确的比例；对于回合，即得分高于 0.5。' },
    score: { title: '得分（均值）', help: '找到了多少所求的结果，又没有多余的结果：0 到 1。' },
    reward: { title: '奖励（均值）', help: '结果、过程与惩罚之和，即训练的目标。' },
    hits: { title: '命中数（均值）', help: '答案中正确结果的数量。' },
    turns: { title: '轮数（均值）', help: '一个回合中模型作答的次数。' },
    firstHit: { title: '首次命中的轮次（均值）', help: '检索结果中首次出现符合条件者的轮次；只统计出现过的回合。' },
    tokens: { title: '回合 Token 数（均值）', help: '提示、模型的回答与工具返回的内容。' },
    sampledTokens: { title: '生成 Token 数（均值）', help: '一个回合中由模型自己生成的 Token。' },
    policyLoss: { title: '策略损失', help: '在参与训练的 Token 上计算；其大小和正负并不说明好坏。' },
    calls: { title: '工具调用（均值）', help: '一个回合中的调用次数，包括失败的调用。' },
    callErrors: { title: '失败的调用（均值）', help: '一个回合中返回错误的调用次数。' },
    episodeTime: { title: '回合用时（均值）', help: '从提问到结束；同一步的回合并行进行。' },
    answered: { title: '已作答（比例）', help: '以答案结束的回合所占比例。' },
    malformed: { title: '格式有误的轮次（均值）', help: '一个回合中，调用无法解析或工具不存在的轮数。' },
    recall: { title: "召回率{'@'}{k}", help: '正确的工具位于检索结果前列的请求所占比例。' },
    mrr: { title: "平均倒数排名{'@'}{k}", help: '正确的工具排第一记 1，排第二记 1/2，依此类推。' },
    workflowErrors: { title: '工作流失败（比例）', help: '工作流失败的回合所占比例；这些回合不参与学习。' },
    missingCalls: { title: '缺少的工具调用', help: '每个回合中，tool_choice 要求调用工具而回复未调用的次数。' },
  },
  chartGroup: { agent: '智能体', training: '训练' },
}
