/** 数据集相关的文字。 */
import lineage from './lineage.zh'
import rows from './rows.zh'
import statistics from './statistics.zh'
import tasks from './tasks.zh'
import upload from './upload.zh'
import versions from './versions.zh'

export default {
  ...rows,
  ...upload,
  lineage,
  statistics,
  tasks,
  versions,
  title: '数据集',
  one: '数据集',
  subtitle: '用来学习的数据：上传、查看、清洗，并按版本保存。',
  upload: '上传数据集',
  filter: '按名称或说明查找',
  column: { name: '名称', state: '状态', format: '格式', rows: '行数', size: '大小', source: '来源', created: '更新时间' },
  state: { creating: '读取中', ready: '就绪', failed: '失败' },
  empty: {
    title: '还没有数据集',
    text: '上传 JSONL、JSON、CSV 或 Parquet 文件，可以把文件拖到此页面的任意位置；也可以从平台磁盘、数据集仓库或 S3 导入。',
    filtered: '没有与“{text}”匹配的内容',
    filteredText: '搜索范围是名称和说明。',
  },
  origin: { upload: '{name}', path: '平台磁盘上的 {name}', hub: '仓库中的 {name}', s3: '{name}', pipeline: '由 {name} 加工', generation: '由 {name} 生成' },
  format: {
    'prompt-answer': '问题与答案',
    messages: '对话',
    preference: '偏好对',
    text: '纯文本',
    'verl-rl': 'verl 强化学习数据',
    unknown: '未知',
  },
  formatUse: {
    'prompt-answer': '适合监督训练，也适合可核对答案的强化学习。',
    messages: '适合在助手轮上做监督训练，也适合强化学习。',
    preference: '适合从比较中学习。',
    text: '没有问题和答案的纯文本。',
    'verl-rl': '适合强化学习，即 verl 直接读取的格式。',
    unknown: '目前没有方案可以直接使用。请用流水线重命名或转换列。',
  },
  facts: {
    format: '格式',
    rows: '行数',
    split: '{name} 中 {n} 行',
    asJson: '以 JSON 计 {size}',
    head: '版本',
    source: '来源',
    created: '创建于 {time}',
    column: '列 {column} 为{part}',
    and: '；',
  },
  tab: { sample: '样例', statistics: '统计', quality: '质量', duplicates: '重复', versions: '版本', lineage: '血缘', quarantine: '未接收' },
  revision: { label: '版本', splitLabel: '划分', branches: '分支', tags: '标签', version: '版本 {id}', split: '{name} · {n} 行' },
  columns: {
    title: '列',
    name: '名称',
    type: '类型',
    part: '作用',
    nulls: '缺失',
    empty: '为空',
    parts: { prompt: '问题', answer: '答案', messages: '对话', chosen: '优选回答', rejected: '落选回答', text: '文本', data_source: '来源', reward_model: '标准答案' },
  },
  warnings: { empty_values: '列 {column} 有 {n} 行为空。', format_unknown: '未能识别格式。', rows_in_quarantine: '{n} 行未被接收，已隔离保存并注明各自的原因。' },
  train: '用它训练',
  clean: '清洗',
  add: '添加数据',
  download: { jsonl: 'JSON Lines', csv: 'CSV', parquet: 'Parquet' },
  edit: { open: '修改名称或说明', title: '名称和说明', save: '保存' },
  creation: {
    title: '导入',
    leave: '可以离开此页面，读取会继续进行。',
    failed: '没有保留任何内容。可以重试，或删除此数据集后上传修正的文件。',
    none: '还没有数据',
    noneText: '原本要生成数据的工作已无记录。',
  },
  remove: {
    title: '删除 {name}？',
    text: '所有版本及其数据都会移除，最新版本有 {n} 行。已结束的任务保留结果，但无法再用这些数据重新运行。',
    textEmpty: '其中还没有数据。',
    uses: '使用者：{names}。',
    usesMore: '使用者：{names} 等，另有 {n} 个。',
    done: '已删除 {name}。',
  },
}
