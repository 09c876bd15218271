/** 命令面板的文字：随其代码加载。 */

/** 中文名词不分单复数。 */
const NAMES = {
  job: '任务',
  sweep: '超参扫描',
  dataset: '数据集',
  model: '模型',
  named_model: '命名模型',
  evaluation: '评测',
  report: '报告',
  endpoint: '端点',
  pipeline: '数据流水线',
  job_pipeline: '工作流',
  environment: '环境',
  workflow: '智能体代码',
  reward_file: '奖励文件',
}

export default {
  title: '查找页面、操作以及任何有名称的内容',
  placeholder: '按名称或编号搜索，或输入命令',
  recent: '最近',
  pages: '页面',
  actions: '操作',
  docs: '文档',
  kind: NAMES,
  one: NAMES,
  action: {
    newSweep: '新建超参扫描',
    newEvaluation: '新建评测',
    newPipeline: '新建数据流水线',
    newWorkflow: '新建工作流',
    light: '浅色主题',
    dark: '深色主题',
    system: '主题跟随系统',
    language: '语言：English',
    logout: '退出登录',
  },
  searching: '正在搜索……',
  nothing: '没有找到“{text}”。',
  failed: '搜索失败：{reason}',
  count: '没有结果 | {n} 个结果 | {n} 个结果',
  hint: { move: '移动', open: '打开', close: '关闭' },
}
