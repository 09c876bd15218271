/**
 * The API's errors in Chinese, by code. The API itself speaks English, with more
 * detail than a code has, so English readers get its own message.
 */

/** `{name}` stands for a field of the error's details. */
export const zhByCode: Readonly<Record<string, string>> = {
  bad_request: '请求有误。',
  checkpoint_not_found: '该任务没有这一步的检查点。',
  checkpoint_not_exportable: '无法由该检查点导出所要的模型。',
  checkpoint_not_usable: '该检查点不存在，或没有 Hugging Face 格式的权重。',
  checkpoint_in_use: '该检查点正在使用中，或已被固定。',
  checkpoint_pruned: '该检查点的文件已被删除，请选择仍然存在的检查点。',
  conflict: '当前状态不允许此操作。',
  cross_site_request: '请求不是来自本界面，已被拒绝。',
  database_unavailable: '数据库没有及时响应，请重试。',
  dataset_file_invalid: '无法读取上传的文件。',
  dataset_file_missing: '数据集的文件缺失或已损坏。',
  dataset_in_use: '有未结束的任务正在使用此数据集。',
  dataset_name_taken: '已有名为“{name}”的数据集。',
  dataset_not_found: '没有这个数据集，可能已被删除。',
  dataset_rows_invalid: '没有接收任何行：部分行有误。',
  disk_full: '磁盘空间不足，无法保存上传的文件。',
  dry_run_finished: '试运行已经结束。',
  dry_run_not_found: '没有这次试运行，可能已被删除。',
  http_error: '请求没有成功。',
  internal_error: '平台内部出错，API 的日志中有更多信息。',
  invalid_configuration: '配置有误，请查看各项说明。',
  invalid_cursor: '翻页位置已失效，请刷新列表。',
  invalid_request: '请求的内容不符合要求。',
  invalid_rewards: '奖励配置有误，请查看各项说明。',
  job_active: '任务尚未结束，请先停止。',
  job_not_cloneable: '导出任务不能复制，请在检查点处重新导出。',
  job_not_found: '没有这个任务，可能已被删除。',
  job_not_resumable: '此任务现在不能继续。',
  job_not_stoppable: '任务已结束或正在停止。',
  login_failed: '令牌或登录链接无效。',
  manifest_not_found: '任务还没有运行到产生运行清单的阶段。',
  method_not_allowed: '不支持此操作。',
  model_folder_invalid: '此文件夹中没有可以训练的模型。',
  model_in_use: '有未结束的任务正在使用此模型。',
  model_is_adapter: '该模型是适配器，不能单独使用；请先导出为合并后的模型。',
  model_name_taken: '已有名为“{name}”的模型。',
  model_not_found: '没有这个模型，可能已被删除。',
  model_not_retryable: '只有下载失败的模型可以重新下载。',
  model_path_outside: '路径超出了平台的数据目录。',
  move_not_allowed: '任务当前的状态不允许此操作。',
  no_rollouts: '该任务在这一步没有记录回答。',
  not_found: '这里没有该内容，可能已被删除。',
  not_logged_in: '登录已失效，请重新登录。',
  recipe_not_found: '没有这个训练方案。',
  reward_file_in_use: '有未结束的任务或试运行正在使用此文件。',
  reward_file_invalid: '文件不是有效的奖励函数，请查看说明。',
  reward_file_name_taken: '已有名为“{name}”的奖励文件。',
  reward_file_not_found: '没有这个奖励文件，可能已被删除。',
  reward_unavailable: '此奖励在本平台上不可用。',
  storage_full: '磁盘剩余空间太少，无法启动任务。',
  storage_unwritable: '平台的数据目录无法写入。',
  too_large: '请求太大。',
  too_many_attempts: '登录失败次数过多，请稍后再试。',
  too_many_gpus: '请求的槽位数超过平台拥有的数量。',
  unknown_dataset: '没有这个数据集。',
  unknown_judge: '没有配置这个评审端点。',
  unknown_model: '没有这个模型，或它尚未就绪。',
  unknown_reward_file: '没有这个奖励文件，可能已被删除。',
  unknown_reward_model: '没有这个奖励模型，或它不可用。',
  unsuitable_dataset: '该训练方案无法使用这种格式的数据集。',
  upload_malformed: '上传的请求格式不正确。',
  upload_too_large: '文件超过了平台允许的大小。',
}

/** More exact than the code: `details.code` of a file or folder that cannot be used. */
export const zhByCause: Readonly<Record<string, string>> = {
  bad_header: '表头有误：列名为空或重复。',
  config_invalid: '文件夹中的 config.json 无法使用。',
  config_missing: '文件夹中没有 config.json。',
  dataset_empty: '文件中没有任何行。',
  encoding_unknown: '无法识别文件的文本编码，请另存为 UTF-8。',
  file_damaged: '文件已损坏或不完整。',
  folder_missing: '数据目录下没有这个文件夹。',
  folder_unreadable: '无法读取这个文件夹。',
  not_text: '这不是文本文件。',
  tokenizer_missing: '文件夹中没有完整的分词器。',
  too_many_columns: '列太多。',
  too_many_files: '文件夹中的文件太多。',
  too_many_rows: '行太多。',
  unsupported_file_type: '不支持这种文件，请使用 JSONL、JSON、CSV 或 Parquet。',
  weights_damaged: '权重文件已损坏。',
  weights_missing: '文件夹中没有 safetensors 权重。',
}

/** Fills `{name}` from the details; null where a field is missing, so that no hole is shown. */
export function fillIn(text: string, details: Readonly<Record<string, unknown>>): string | null {
  let isWhole = true
  const filled = text.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = details[name]
    if (typeof value === 'string' || typeof value === 'number') return String(value)
    isWhole = false
    return ''
  })
  return isWhole ? filled : null
}
